import { createHash } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import { type CloudInitRow, cloudInitTable, insertCloudInit, removeCloudInit } from "../../store/catalog/cloud-init.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { actorOf } from "../call/initiator.ts";
import type { ListPage, ListRequest } from "../call/listing.ts";
import { type Catalog, createEntry, deleteEntry, pageEntries, refusal } from "./entries.ts";

export type { CloudInitRow } from "../../store/catalog/cloud-init.ts";

/** Runs have copies: nothing keeps a document. */
const DOCUMENTS: Catalog<CloudInitRow> = {
  kind: "cloud_init",
  noun: "cloud-init",
  called: "a cloud-init document",
  table: cloudInitTable,
  findUser: async () => undefined,
  remove: (_, tx, name) => removeCloudInit(tx, name),
};

const NAME = /^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$/;
const LONGEST = 64 * 1_024;

export async function createCloudInit(
  deps: ServiceDeps,
  caller: Caller,
  input: Pick<CloudInitRow, "name" | "content">,
): Promise<CloudInitRow> {
  const name = checkName(input.name);
  const content = checkContent(deps, input.content);
  return createEntry(deps, caller, DOCUMENTS, {
    name,
    insert: (tx) => insertCloudInit(tx, { name, content, createdBy: actorOf(caller) }),
    data: { digest: digestOf(content) },
  });
}

export const pageCloudInit = (deps: ServiceDeps, request: ListRequest): Promise<ListPage<CloudInitRow>> =>
  pageEntries(deps, DOCUMENTS, request);

export async function getCloudInit({ db }: ServiceDeps, given: string): Promise<CloudInitRow> {
  const name = checkName(given);
  const [document] = await cloudInitTable.list(db, { names: [name] });
  if (document) return document;
  throw new AppError("not_found", `cloud-init document ${name} does not exist`, {
    field: "name",
    next: "millwright cloud-init list",
  });
}

export const deleteCloudInit = async (deps: ServiceDeps, caller: Caller, name: string): Promise<void> =>
  deleteEntry(deps, caller, DOCUMENTS, checkName(name));

export const digestOf = (content: string): string => `sha256:${createHash("sha256").update(content).digest("hex")}`;

function checkName(text: string): string {
  if (NAME.test(text)) return text;
  throw refusal(
    "name",
    `${JSON.stringify(text.slice(0, 80))} is not a name of a document (letters, digits and . _ : / @ + -)`,
  );
}

/** What it begins with says what it is; what cannot be that would stop an installer in its middle. */
function checkContent({ seedWriter }: ServiceDeps, text: string): string {
  if (text.trim() === "" || Buffer.byteLength(text) > LONGEST)
    throw refusal("content", `is required, with at most ${LONGEST} bytes`);
  if (text.includes("\0")) throw refusal("content", "must not contain the NUL character");
  const why = seedWriter?.whyUnreadable(text);
  if (why !== undefined) throw refusal("content", why);
  return text;
}

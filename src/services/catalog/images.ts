import { AppError } from "../../kernel/errors.ts";
import { isPrintable } from "../../kernel/printable.ts";
import {
  findRunOfImage,
  holdImageAlone,
  IMAGE_KINDS,
  type ImageRow,
  insertImage,
  listImages,
  removeImage,
  SUCCESS_PROOFS,
} from "../../store/catalog/images.ts";
import { listWorkflows } from "../../store/install/workflows.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { actorOf } from "../call/initiator.ts";
import { checkPageSize, cutPage, type Page, parsePageToken } from "../call/paging.ts";
import { audit } from "./audit.ts";

export type { ImageRow } from "../../store/catalog/images.ts";

const KIND = "image";
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const LONGEST_LOCATION = 2_048;

export interface CreateImage {
  readonly name: string;
  readonly kind: string;
  readonly location: string;
  readonly digest: string;
  /** Empty takes ssh. */
  readonly successProof: string;
}

export async function createImage(deps: ServiceDeps, caller: Caller, input: CreateImage): Promise<ImageRow> {
  const kind = checkWord(input.kind, IMAGE_KINDS, "kind");
  const image = {
    name: checkName(input.name),
    kind,
    location: kind === "netboot" ? input.location : checkLocation(input.location),
    digest: checkDigest(input.digest),
    successProof: checkWord(input.successProof || "ssh", SUCCESS_PROOFS, "success_proof"),
  };
  const { name, successProof, ...telling } = image;
  return deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: KIND, id: name }]);
    if (kind === "netboot") await checkWorkflow(tx, image);
    if (!(await insertImage(tx, { ...image, createdBy: actorOf(caller) }))) {
      throw new AppError("already_exists", `name: an image ${name} exists already`, {
        field: "name",
        next: "millwright image list",
      });
    }
    const data = { ...telling, success_proof: successProof };
    await audit(tx, caller, { kind: KIND, id: name, type: "created", data });
    const [row] = await listImages(tx, { names: [name] });
    if (!row) throw new Error(`image ${name} was written and is not there`);
    return row;
  });
}

/** In the order of their names. */
export async function pageImages(
  deps: ServiceDeps,
  request: { readonly pageSize: number; readonly pageToken: string },
): Promise<Page<ImageRow>> {
  const size = checkPageSize(request.pageSize);
  const after = parsePageToken(deps.secrets, request.pageToken, { of: "images" }, 1)?.[0];
  const rows = await listImages(deps.db, { after, limit: size + 1 });
  return cutPage(deps.secrets, rows, size, { of: "images" }, ({ name }) => [name]);
}

export async function deleteImage(deps: ServiceDeps, caller: Caller, text: string): Promise<void> {
  const name = checkName(text);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: KIND, id: name }]);
    // A run that is being started holds the image: only after it is there can we tell that nobody needs it.
    if (!(await holdImageAlone(tx, name))) {
      throw new AppError("not_found", `image ${name} does not exist`, { field: "name", next: "millwright image list" });
    }
    const run = await findRunOfImage(tx, name);
    if (run !== undefined) {
      throw new AppError("failed_precondition", `run ${run} installs image ${name}, so it stays`, {
        field: "name",
        next: `millwright run show ${run}`,
      });
    }
    await removeImage(tx, name);
    await audit(tx, caller, { kind: KIND, id: name, type: "deleted", data: {} });
  });
}

function checkName(text: string): string {
  if (NAME.test(text)) return text;
  throw refusal(
    "name",
    `${JSON.stringify(text.slice(0, 80))} is not an image name (letters, digits and . _ : / @ + -)`,
  );
}

function checkLocation(text: string): string {
  const isUrl = URL.canParse(text) && /^(https?|nfs|cifs):$/.test(new URL(text).protocol);
  if (isUrl && text.length <= LONGEST_LOCATION && isPrintable(text)) return text;
  throw refusal("location", "must be an http, https, nfs or cifs URL");
}

/** What is installed over the network is a workflow: it must be there, and must not name another image. */
async function checkWorkflow(tx: Transaction, { location, digest }: Pick<ImageRow, "location" | "digest">) {
  const [workflow] = await listWorkflows(tx, { ids: [location], activeOnly: true });
  if (!workflow)
    throw refusal("location", `of a netboot image is the id of a workflow, and there is none ${location.slice(0, 80)}`);
  const { boot } = workflow;
  if (boot.method === "image" && boot.image_digest !== digest)
    throw refusal("digest", `must be ${boot.image_digest}: that is what workflow ${workflow.id} installs`);
}

function checkDigest(text: string): string {
  if (DIGEST.test(text)) return text;
  throw refusal("digest", "must be sha256: and 64 hexadecimal digits in small letters");
}

function checkWord<const W extends string>(text: string, words: readonly W[], field: string): W {
  const word = words.find((each) => each === text);
  if (word !== undefined) return word;
  throw refusal(field, `must be one of ${words.join(", ")}, got ${JSON.stringify(text.slice(0, 80))}`);
}

const refusal = (field: string, why: string): AppError =>
  new AppError("invalid_argument", `${field}: ${why}`, { field });

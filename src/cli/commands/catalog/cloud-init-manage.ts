import {
  type CloudInitDocument,
  CloudInitDocumentSchema,
  CloudInitService,
} from "../../../../contract/millwright/v1/cloud_init_pb.js";
import { readTextFile } from "../../client/discover-server.ts";
import { UsageError } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printableLines } from "../../terminal/printable.ts";
import { printDone, printList, printOne } from "../../terminal/printing.ts";
import { clockTime, isoTime } from "../../terminal/times.ts";
import type { ListOptions } from "../options/list-options.ts";
import { readList } from "../options/read-list.ts";

export interface CreateCloudInitOptions {
  readonly file: string;
}

const columns: readonly Column<CloudInitDocument>[] = [
  { title: "NAME", cell: ({ name }) => name },
  { title: "CREATED", cell: (row) => clockTime(row.createdAt), plain: (row) => isoTime(row.createdAt) },
  { title: "DIGEST", cell: ({ digest }) => digest },
];
const json = (document: CloudInitDocument) => jsonOf(CloudInitDocumentSchema, document);

export async function listCloudInit(session: Session, options: ListOptions): Promise<undefined> {
  const client = await session.client(CloudInitService);
  const items = await readList(
    session,
    options,
    (query) => client.listCloudInit(query, { signal: session.signal }),
    ({ documents }) => documents,
  );
  await printList(session, { items, columns, json }, "No documents.");
}

export async function showCloudInit(session: Session, name: string): Promise<undefined> {
  const client = await session.client(CloudInitService);
  const { document } = await client.getCloudInit({ name }, { signal: session.signal });
  if (!document) throw new Error("the server answered without the document");
  await printOne(session, {
    item: document,
    columns,
    json: () => json(document),
    details: [
      ["Document", document.name, "bold"],
      ["Digest", document.digest],
      ["Created", isoTime(document.createdAt)],
    ],
    sections: [{ title: "Content", body: `${printableLines(document.content.trimEnd())}\n` }],
  });
}

export async function createCloudInit(
  session: Session,
  name: string,
  { file }: CreateCloudInitOptions,
): Promise<undefined> {
  const content = file === "-" ? await session.terminal.stdin.readAll() : readTextFile(file);
  if (content === undefined) throw new UsageError(`--file: ${file} does not exist`);
  const client = await session.client(CloudInitService);
  await client.createCloudInit({ name, content }, { signal: session.signal });
  await printDone(session, `Cloud-init document ${name} created.`, { name });
}

export async function deleteCloudInit(session: Session, name: string, { yes }: ConfirmOptions): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Delete cloud-init document ${name}?` });
  const client = await session.client(CloudInitService);
  await client.deleteCloudInit({ name }, { signal: session.signal });
  await printDone(session, `Cloud-init document ${name} deleted.`, { name });
}

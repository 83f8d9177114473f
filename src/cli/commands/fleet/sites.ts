import { FleetService, type FleetSite, FleetSiteSchema } from "../../../../contract/millwright/v1/fleet_pb.js";
import { UsageError } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printDone, printList } from "../../terminal/printing.ts";
import { readSecretFile } from "../../terminal/secret-input.ts";
import { clockTime, isoTime } from "../../terminal/times.ts";
import type { ListOptions } from "../options/list-options.ts";
import { readList } from "../options/read-list.ts";

interface HowOptions {
  readonly allowHttp?: boolean;
  readonly skipProbe?: boolean;
}
export interface AddSiteOptions extends HowOptions {
  readonly url: string;
  readonly apiKeyFile: string;
  readonly description?: string;
  readonly retainInMaas?: boolean;
}
export interface UpdateSiteOptions extends HowOptions {
  readonly url?: string;
  readonly apiKeyFile?: string;
  readonly description?: string;
  readonly retainInMaas?: boolean;
  readonly enable?: boolean;
  readonly disable?: boolean;
}

const columns: readonly Column<FleetSite>[] = [
  { title: "NAME", cell: ({ name }) => name },
  { title: "STATE", cell: ({ enabled }) => (enabled ? "enabled" : "disabled") },
  { title: "URL", cell: ({ url }) => url },
  { title: "WHEN REMOVED", cell: ({ retainInMaas }) => (retainInMaas ? "stays in MAAS" : "deleted in MAAS") },
  { title: "CREATED", cell: (row) => clockTime(row.createdAt), plain: (row) => isoTime(row.createdAt) },
  { title: "DESCRIPTION", cell: ({ description }) => description },
];
const print = (session: Session, items: readonly FleetSite[]) =>
  printList(session, { items, columns, json: (site) => jsonOf(FleetSiteSchema, site) }, "No fleet sites.");

const readKey = async (session: Session, file: string): Promise<string> =>
  (await readSecretFile(session, file, { option: "--api-key-file", question: "API key of MAAS" })).trim();

export async function addSite(session: Session, name: string, options: AddSiteOptions): Promise<undefined> {
  const { apiKeyFile, ...given } = options;
  const client = await session.client(FleetService);
  await client.addSite({ name, ...given, apiKey: await readKey(session, apiKeyFile) }, { signal: session.signal });
  await printDone(session, `Fleet site ${name} added. Next: millwright fleet preflight ${name}`, { name });
}

export async function updateSite(session: Session, name: string, options: UpdateSiteOptions): Promise<undefined> {
  const { apiKeyFile, enable, disable, ...given } = options;
  if (enable && disable) throw new UsageError("--enable and --disable contradict each other");
  const apiKey = apiKeyFile === undefined ? undefined : await readKey(session, apiKeyFile);
  const client = await session.client(FleetService);
  await client.updateSite(
    {
      ...{ name, ...given },
      ...(apiKey !== undefined && { apiKey }),
      ...((enable || disable) && { enabled: enable === true }),
    },
    { signal: session.signal },
  );
  await printDone(session, `Fleet site ${name} changed.`, { name });
}

export async function listSites(session: Session, options: ListOptions): Promise<undefined> {
  const client = await session.client(FleetService);
  const items = await readList(
    session,
    options,
    (query) => client.listSites(query, { signal: session.signal }),
    ({ sites }) => sites,
  );
  await print(session, items);
}

export async function showSite(session: Session, name: string): Promise<undefined> {
  const client = await session.client(FleetService);
  const { site } = await client.getSite({ name }, { signal: session.signal });
  await print(session, site ? [site] : []);
}

export async function removeSite(session: Session, name: string, { yes }: ConfirmOptions): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Remove fleet site ${name} and its API key?` });
  const client = await session.client(FleetService);
  await client.removeSite({ name }, { signal: session.signal });
  await printDone(session, `Fleet site ${name} removed.`, { name });
}

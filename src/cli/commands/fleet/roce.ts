import {
  FleetAllocationService,
  type RoceAssignment,
  RoceAssignmentSchema,
} from "../../../../contract/millwright/v1/fleet_allocation_pb.js";
import { readTextFile } from "../../client/discover-server.ts";
import { UsageError } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printDone, printList } from "../../terminal/printing.ts";
import { readCsv } from "../../terminal/read-csv.ts";

const PAGE_SIZE = 500;
const COLUMNS = ["hostname", "port", "subnet", "ip_address"] as const;

interface Link {
  readonly port: string;
  readonly subnet: string;
  readonly ipAddress: string;
}

const columns: readonly Column<RoceAssignment>[] = [
  { title: "SITE", cell: ({ site }) => site },
  { title: "HOSTNAME", cell: ({ hostname }) => hostname },
  {
    title: "LINKS",
    cell: ({ links }) => links.map(({ port, subnet, ipAddress }) => `${port}=${ipAddress}@${subnet}`).join(" "),
  },
];

export async function setRoce(
  session: Session,
  hostname: string,
  { site, link }: { readonly site: string; readonly link: readonly string[] },
): Promise<undefined> {
  const client = await session.client(FleetAllocationService);
  await client.setRoceAssignments(
    { site, nodes: [{ hostname, links: link.map(parseLink) }] },
    { signal: session.signal },
  );
  await printDone(session, `RoCE assignment of ${hostname} at site ${site} set.`, { site, hostname });
}

function parseLink(text: string): Link {
  const { port, ipAddress, subnet } = /^(?<port>[^=]+)=(?<ipAddress>[^@]+)@(?<subnet>.+)$/.exec(text)?.groups ?? {};
  if (port === undefined || ipAddress === undefined || subnet === undefined)
    throw new UsageError(`--link: "${text}" must be port=address@subnet, such as ib0=10.10.0.17@10.10.0.0/24`);
  return { port, ipAddress, subnet };
}

/** All of a file or none of it: each node that it names gets its links in place of those that it had. */
export async function importRoce(
  session: Session,
  { site, file }: { readonly site: string; readonly file: string },
): Promise<undefined> {
  const text = file === "-" ? await session.terminal.stdin.readAll() : readTextFile(file);
  if (text === undefined) throw new UsageError(`--file: ${file} does not exist`);
  const links = new Map<string, Link[]>();
  for (const { line, cells } of readCsv(text, file, COLUMNS)) {
    const { hostname = "", port = "", subnet = "", ip_address: ipAddress = "" } = cells;
    const missing = COLUMNS.find((column) => (cells[column] ?? "") === "");
    if (missing !== undefined) throw new UsageError(`${file}, line ${line}: ${missing} is missing`);
    links.set(hostname, [...(links.get(hostname) ?? []), { port, subnet, ipAddress }]);
  }
  const client = await session.client(FleetAllocationService);
  const nodes = [...links].map(([hostname, of]) => ({ hostname, links: of }));
  const { assignments } = await client.setRoceAssignments({ site, nodes }, { signal: session.signal });
  await printDone(session, `RoCE assignments of ${assignments.length} nodes at site ${site} set.`, {
    site,
    nodes: assignments.length,
  });
}

export async function listRoce(session: Session, { site = "" }: { readonly site?: string }): Promise<undefined> {
  const client = await session.client(FleetAllocationService);
  const items = await readPages(
    (pageToken) => client.listRoceAssignments({ site, pageSize: PAGE_SIZE, pageToken }, { signal: session.signal }),
    ({ assignments }) => assignments,
  );
  const json = (assignment: RoceAssignment) => jsonOf(RoceAssignmentSchema, assignment);
  await printList(session, { items, columns, json }, "No RoCE assignments.");
}

export async function removeRoce(
  session: Session,
  hostname: string,
  { site, yes }: ConfirmOptions & { readonly site: string },
): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Remove the RoCE assignment of ${hostname} at site ${site}?` });
  const client = await session.client(FleetAllocationService);
  await client.removeRoceAssignment({ site, hostname }, { signal: session.signal });
  await printDone(session, `RoCE assignment of ${hostname} at site ${site} removed.`, { site, hostname });
}

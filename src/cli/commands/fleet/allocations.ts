import { randomUUID } from "node:crypto";
import {
  type FleetAllocation,
  FleetAllocationSchema,
  FleetAllocationService,
} from "../../../../contract/millwright/v1/fleet_allocation_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printDone, printList } from "../../terminal/printing.ts";
import { clockTime, isoTime } from "../../terminal/times.ts";

const PAGE_SIZE = 500;

const columns: readonly Column<FleetAllocation>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "NODE", cell: ({ hostname, node }) => (hostname === "" ? node : hostname) },
  { title: "TENANT", cell: ({ tenant }) => tenant },
  { title: "STATE", cell: ({ state }) => state },
  { title: "SINCE", cell: (row) => clockTime(row.stateSince), plain: (row) => isoTime(row.stateSince) },
  { title: "MESSAGE", cell: ({ message }) => message },
];

const print = (session: Session, items: readonly FleetAllocation[]) =>
  printList(session, { items, columns, json: (each) => jsonOf(FleetAllocationSchema, each) }, "No fleet allocations.");

export interface ListAllocationsOptions {
  readonly node?: string;
  readonly state?: string;
  readonly tenant?: string;
}

export async function listAllocations(session: Session, options: ListAllocationsOptions): Promise<undefined> {
  const client = await session.client(FleetAllocationService);
  const items = await readPages(
    (pageToken) => client.listAllocations({ ...options, pageSize: PAGE_SIZE, pageToken }, { signal: session.signal }),
    ({ allocations }) => allocations,
  );
  await print(session, items);
}

export async function showAllocation(session: Session, id: string): Promise<undefined> {
  const client = await session.client(FleetAllocationService);
  const { allocation } = await client.getAllocation({ id }, { signal: session.signal });
  await print(session, allocation ? [allocation] : []);
}

export async function requestAllocation(
  session: Session,
  node: string,
  { tenant, requestId = randomUUID() }: { readonly tenant: string; readonly requestId?: string },
): Promise<undefined> {
  const client = await session.client(FleetAllocationService);
  const { allocation } = await client.requestAllocation({ node, tenant, requestId }, { signal: session.signal });
  const id = allocation?.id ?? "";
  await printDone(session, `Allocation ${id} of ${node} for ${tenant} requested.`, { id, node, tenant });
}

export async function releaseAllocation(session: Session, id: string): Promise<undefined> {
  const client = await session.client(FleetAllocationService);
  const { allocation } = await client.releaseAllocation({ id }, { signal: session.signal });
  await printDone(session, `Allocation ${id} is ${allocation?.state ?? ""}.`, { id, state: allocation?.state ?? "" });
}

export async function forceReleaseAllocation(
  session: Session,
  id: string,
  { yes }: ConfirmOptions,
): Promise<undefined> {
  if (!yes) await confirm(session, { what: `End allocation ${id}, and not wait for who uses it?` });
  const client = await session.client(FleetAllocationService);
  const { allocation } = await client.forceReleaseAllocation({ id }, { signal: session.signal });
  await printDone(session, `Allocation ${id} is ${allocation?.state ?? ""}.`, { id, state: allocation?.state ?? "" });
}

import { type Machine, MachineService, type Run, RunService } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { MachineService as ListedMachineService } from "../../../../contract/millwright/v1/machine_pb.js";
import { isConnectError } from "../../client/errors.ts";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import { printList, printOne } from "../../terminal/printing.ts";
import { joinFilters, type ListOptions, limitOf, printTotal } from "../options/list-options.ts";
import { machineColumns, machineJson, machineThing } from "./view.ts";

const PAGE_SIZE = 500;
const LAST_RUNS = 5;

export async function listMachines(
  session: Session,
  options: ListOptions & { readonly failing?: boolean; readonly watch?: boolean },
): Promise<number | undefined> {
  // The server leaves out what is well, so that pages are full of what was asked for.
  const filter = joinFilters(options.filter, options.failing ? "failing=true" : undefined);
  if (options.watch) return (await import("./watch.ts")).watchMachines(session, { filter });
  const { items, total } = await readList(session, { ...options, filter });
  const none = options.failing ? "No machine is in trouble." : "No machines.";
  await printList(session, { items, columns: machineColumns, json: machineJson }, none);
  printTotal(session, items.length, total);
  return undefined;
}

/** baremetal.v1 has neither an order nor a total; where none is asked for, it will do, on servers of any age. */
async function readList(
  session: Session,
  options: ListOptions & { readonly filter: string },
): Promise<{ readonly items: Machine[]; readonly total?: number | undefined }> {
  const { filter, orderBy = "", total: withTotal = false } = options;
  const limit = limitOf(options);
  if (orderBy === "" && !withTotal) return { items: await readMachines(session, filter, limit) };
  const client = await session.client(ListedMachineService);
  let total: number | undefined;
  const items = await readPages(
    async (pageToken) => {
      const pageSize = Math.min(limit ?? PAGE_SIZE, PAGE_SIZE);
      const asked = { filter, orderBy, pageSize, pageToken, withTotal: withTotal && pageToken === "" };
      const page = await client.listMachines(asked, { signal: session.signal });
      total ??= page.totalSize;
      return page;
    },
    ({ machines }) => machines,
    limit,
  );
  return { items, total };
}

/** All that the filter lets through, page after page. */
export async function readMachines(session: Session, filter: string, limit?: number): Promise<Machine[]> {
  const client = await session.client(MachineService);
  const pageSize = Math.min(limit ?? PAGE_SIZE, PAGE_SIZE);
  return readPages(
    (pageToken) => client.listMachines({ filter, pageSize, pageToken }, { signal: session.signal }),
    ({ machines }) => machines,
    limit,
  );
}

export async function showMachine(
  session: Session,
  machineId: string,
  options: { readonly watch?: boolean } = {},
): Promise<number | undefined> {
  const client = await session.client(MachineService);
  const machine = await client.getMachine({ machineId }, { signal: session.signal });
  if (options.watch) return (await import("./watch.ts")).watchMachine(session, machine.machineId);
  const style = session.style();
  const runs = style.format === "table" ? await lastRuns(session, machine.machineId) : [];
  await printOne(session, machineThing(machine, runs, style));
  return undefined;
}

/** The newest first. A caller who may not see runs still sees the machine. */
export async function lastRuns(session: Session, machineId: string): Promise<Run[]> {
  const client = await session.client(RunService);
  try {
    const filter = `machine_id=${machineId}`;
    return (await client.listRuns({ filter, pageSize: LAST_RUNS }, { signal: session.signal })).runs;
  } catch (error) {
    const { Code } = await import("@connectrpc/connect");
    if (isConnectError(error) && (error.code === Code.PermissionDenied || error.code === Code.Unimplemented)) return [];
    throw error;
  }
}

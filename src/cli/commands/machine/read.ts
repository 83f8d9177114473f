import { type Machine, MachineService, type Run, RunService } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { isConnectError } from "../../client/errors.ts";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import { printList, printOne } from "../../terminal/printing.ts";
import { machineColumns, machineJson, machineThing } from "./view.ts";

const PAGE_SIZE = 500;
const LAST_RUNS = 5;

export async function listMachines(
  session: Session,
  options: { readonly filter?: string; readonly failing?: boolean; readonly watch?: boolean },
): Promise<number | undefined> {
  // The server leaves out what is well, so that pages are full of what was asked for.
  const filter = [options.filter ?? "", options.failing ? "failing=true" : ""]
    .filter((part) => part.trim() !== "")
    .join(" AND ");
  if (options.watch) return (await import("./watch.ts")).watchMachines(session, { filter });
  const items = await readMachines(session, filter);
  const none = options.failing ? "No machine is in trouble." : "No machines.";
  await printList(session, { items, columns: machineColumns, json: machineJson }, none);
  return undefined;
}

/** All that the filter lets through, page after page. */
export async function readMachines(session: Session, filter: string): Promise<Machine[]> {
  const client = await session.client(MachineService);
  return readPages(
    (pageToken) => client.listMachines({ filter, pageSize: PAGE_SIZE, pageToken }, { signal: session.signal }),
    ({ machines }) => machines,
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

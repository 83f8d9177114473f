import { type Machine, MachineService } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { EXIT, isConnectError } from "../../client/errors.ts";
import { followEvents } from "../../client/events.ts";
import type { Session } from "../../client/session.ts";
import { createLiveView } from "../../terminal/live-view.ts";
import { renderChange, renderList, renderOne, type Style } from "../../terminal/output.ts";
import { joinFilters } from "../options/list-options.ts";
import { goneLine } from "../power-shelf/list.ts";
import { lastRuns, readMachines } from "./read.ts";
import { machineColumns, machineJson, watchedMachineThing } from "./view.ts";

const KINDS = ["machine"];
const listing = { columns: machineColumns, json: machineJson };

/** The table, kept current. Elsewhere than on a terminal: the list, then a line for each change. */
export async function watchMachines(session: Session, { filter = "" }: { readonly filter?: string }): Promise<number> {
  const machines = new Map<string, Machine>();
  const view = createLiveView(session, async (style) => {
    const items = [...machines.values()].sort((a, b) => (a.machineId < b.machineId ? -1 : 1));
    return renderList({ items, ...listing }, style);
  });
  for await (const followed of followEvents(session, { kinds: KINDS, from: "now" }, session.signal)) {
    if (followed.type === "ready") {
      for (const machine of await readMachines(session, filter)) machines.set(machine.machineId, machine);
      await view.start();
      continue;
    }
    const { id } = followed.event;
    const wasListed = machines.has(id);
    // The server judges by its own filter whether it still belongs here.
    const [listed] = await readMachines(session, joinFilters(filter, `machine_id=${id}`));
    if (listed) machines.set(id, listed);
    else machines.delete(id);
    if (!wasListed && !listed) continue;
    const machine = listed ?? (await readMachine(session, id));
    await view.change(changeOf(machine, id));
  }
  await view.stop();
  return EXIT.interrupted;
}

/** One machine, kept current. */
export async function watchMachine(session: Session, id: string): Promise<number> {
  let machine: Machine | undefined;
  const view = createLiveView(session, async (style) => {
    if (!machine) return goneLine(id, style.format);
    const runs = style.format === "table" ? await lastRuns(session, id) : [];
    return renderOne(watchedMachineThing(machine, runs, style), style);
  });
  for await (const followed of followEvents(session, { kinds: KINDS, ids: [id], from: "now" }, session.signal)) {
    machine = await readMachine(session, id);
    if (followed.type === "ready") await view.start();
    else await view.change(changeOf(machine, id));
    if (!machine) {
      await view.stop();
      return EXIT.notFound;
    }
  }
  await view.stop();
  return EXIT.interrupted;
}

const changeOf = (machine: Machine | undefined, id: string) => async (style: Style) =>
  machine ? renderChange(listing, machine, style) : goneLine(id, style.format);

/** The machine as it is now; undefined once it is gone. */
async function readMachine(session: Session, machineId: string): Promise<Machine | undefined> {
  const client = await session.client(MachineService);
  try {
    return await client.getMachine({ machineId }, { signal: session.signal });
  } catch (error) {
    const { Code } = await import("@connectrpc/connect");
    if (isConnectError(error) && error.code === Code.NotFound) return undefined;
    throw error;
  }
}

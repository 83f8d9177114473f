import { type Machine, MachineService } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import type { Session } from "../../client/session.ts";
import { unlessGone, type WatchedKind, watchList, watchOne } from "../device/watch.ts";
import { joinFilters } from "../options/list-options.ts";
import { lastRuns, readMachines } from "./read.ts";
import { machineColumns, machineJson, watchedMachineThing } from "./view.ts";

const watchedMachines: WatchedKind<Machine> = {
  kind: "machine",
  idOf: ({ machineId }) => machineId,
  async read(session, machineId) {
    const client = await session.client(MachineService);
    return unlessGone(() => client.getMachine({ machineId }, { signal: session.signal }));
  },
  listing: () => ({ columns: machineColumns, json: machineJson }),
};

export const watchMachines = (session: Session, { filter = "" }: { readonly filter?: string }): Promise<number> =>
  watchList(session, watchedMachines, {
    list: () => readMachines(session, filter),
    // The server judges by its own filter whether it still belongs here.
    readListed: async (id) => (await readMachines(session, joinFilters(filter, `machine_id=${id}`)))[0],
    order: (a, b) => (a.machineId < b.machineId ? -1 : 1),
  });

export const watchMachine = (session: Session, id: string): Promise<number> =>
  watchOne(session, watchedMachines, {
    id,
    thing: async (machine, style) =>
      watchedMachineThing(machine, style.format === "table" ? await lastRuns(session, id) : [], style),
  });

import { type Batcher, createBatcher } from "../../kernel/batcher.ts";
import { parseMachineId } from "../../kernel/ids.ts";
import { holds } from "../../lifecycles/machine/conditions.ts";
import { type Banner, bannersOf, effectiveState } from "../../lifecycles/machine/effective-state.ts";
import { isFailing } from "../../lifecycles/machine/failing.ts";
import { type MachinePhase, sshAddressOf } from "../../lifecycles/machine/machine.ts";
import { type PinnedKey, pinnedKeyOf } from "../../lifecycles/machine/sighting.ts";
import type { Claim } from "../../store/lifecycle/claims/claims.ts";
import { machineListing } from "../../store/machine/machine-list.ts";
import { listMachines, type MachineRecord } from "../../store/machine/machines.ts";
import type { Database } from "../../store/postgres/database.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import { unknownMachine } from "./machines.ts";

export type { Condition } from "../../lifecycles/machine/conditions.ts";
export type { MachinePhase } from "../../lifecycles/machine/machine.ts";
export type { Claim } from "../../store/lifecycle/claims/claims.ts";
export type { MachineRecord } from "../../store/machine/machines.ts";

/** A machine and all there is to say about where it stands. */
export interface MachineView {
  readonly machine: MachineRecord;
  readonly phase: MachinePhase;
  readonly effectiveState: MachinePhase;
  readonly banners: readonly Banner[];
  readonly failing: boolean;
  /** What it or its active run waits for; empty when that is nothing. */
  readonly waitingFor: string;
  readonly claim: Claim | null;
  /** Where it is reached since a run gave it another address than its owner says; empty unless one did. */
  readonly sshMovedTo: string;
  /** The host key that it must show, and who says so. */
  readonly hostKey: PinnedKey | null;
}

function viewOf(machine: MachineRecord): MachineView {
  const phase = machine.state.name as MachinePhase;
  return {
    machine,
    phase,
    effectiveState: effectiveState({
      phase,
      runIsActive: machine.activeRunId !== null,
      inCustomerCluster: holds(machine.conditions, "InCustomerCluster"),
    }),
    banners: bannersOf(machine.conditions),
    failing: isFailing({ phase, conditions: machine.conditions }),
    waitingFor: machine.outcome?.reason ?? machine.runWaitsFor ?? "",
    claim: machine.claim,
    sshMovedTo: movedTo(machine),
    hostKey: pinnedKeyOf(machine),
  };
}

function movedTo(machine: MachineRecord): string {
  const address = sshAddressOf(machine);
  return address === null || address === machine.spec.ssh?.address ? "" : address;
}

type Reader = Batcher<string, MachineView | undefined>;
const readers = new WeakMap<Database, Reader>();

/** Those who ask for a machine while others are being answered are answered together: one statement for all of them. */
function readerOf(deps: ServiceDeps): Reader {
  const known = readers.get(deps.db);
  if (known) return known;
  const reader = createBatcher<string, MachineView | undefined>({
    most: 200,
    atOnce: 4,
    async run(ids) {
      const views = (await listMachines(deps.db, { ids: [...new Set(ids)] })).map(viewOf);
      const byId = new Map<string, MachineView>(views.map((view) => [view.machine.id, view]));
      return ids.map((id) => byId.get(id));
    },
  });
  readers.set(deps.db, reader);
  return reader;
}

export async function viewMachine(deps: ServiceDeps, machineId: string): Promise<MachineView> {
  const id = parseMachineId(machineId, "machine_id");
  const view = await readerOf(deps).submit(id);
  if (!view) throw unknownMachine(id);
  return view;
}

/** In the order of their ids unless told, each as `show` has it: one after the other, so that a page is held only as it is sent. */
export const pageMachines = <T>(
  deps: ServiceDeps,
  request: ListRequest,
  show: (view: MachineView) => T,
): Promise<ListPage<T>> => pageList(deps, machineListing, request, { show: (machine) => show(viewOf(machine)) });

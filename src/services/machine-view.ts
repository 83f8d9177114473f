import { parseFilter } from "../kernel/filter.ts";
import { parseMachineId } from "../kernel/ids.ts";
import { holds } from "../lifecycles/machine/conditions.ts";
import { type Banner, bannersOf, effectiveState } from "../lifecycles/machine/effective-state.ts";
import type { MachinePhase } from "../lifecycles/machine/machine.ts";
import { type Claim, list as listClaims } from "../store/claims.ts";
import { listMachines, MACHINE_FILTER_FIELDS, type MachineRecord } from "../store/machines.ts";
import type { ServiceDeps } from "./deps.ts";
import { machineKey, unknownMachine } from "./machines.ts";
import { checkPageSize, cutPage, type Page, parsePageToken } from "./paging.ts";

export type { Condition } from "../lifecycles/machine/conditions.ts";
export type { MachinePhase } from "../lifecycles/machine/machine.ts";
export type { Claim } from "../store/claims.ts";
export type { MachineRecord } from "../store/machines.ts";

/** A machine and all there is to say about where it stands. */
export interface MachineView {
  readonly machine: MachineRecord;
  readonly phase: MachinePhase;
  readonly effectiveState: MachinePhase;
  readonly banners: readonly Banner[];
  /** What it or its active run waits for; empty when that is nothing. */
  readonly waitingFor: string;
  readonly claim: Claim | null;
}

/** Puts claims beside the machines: one query, however many there are. */
async function viewMachines(deps: ServiceDeps, machines: readonly MachineRecord[]): Promise<MachineView[]> {
  const claims = await listClaims(
    deps.db,
    machines.map(({ id }) => machineKey(id)),
  );
  const granted = new Map(claims.filter(({ grantedAt }) => grantedAt !== null).map((claim) => [claim.thing.id, claim]));
  return machines.map((machine) => {
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
      waitingFor: machine.outcome?.reason ?? machine.runWaitsFor ?? "",
      claim: granted.get(machine.id) ?? null,
    };
  });
}

export async function viewMachine(deps: ServiceDeps, machineId: string): Promise<MachineView> {
  const id = parseMachineId(machineId, "machine_id");
  const [view] = await viewMachines(deps, await listMachines(deps.db, { ids: [id] }));
  if (!view) throw unknownMachine(id);
  return view;
}

export interface MachineListRequest {
  readonly filter: string;
  readonly pageSize: number;
  readonly pageToken: string;
}

/** In the order of their ids. */
export async function pageMachines(deps: ServiceDeps, request: MachineListRequest): Promise<Page<MachineView>> {
  const query = { filter: request.filter };
  const filter = parseFilter(request.filter, MACHINE_FILTER_FIELDS);
  const size = checkPageSize(request.pageSize);
  const after = parsePageToken(request.pageToken, query, 1)?.[0];
  const machines = await listMachines(deps.db, { filter, limit: size + 1, ...(after !== undefined && { after }) });
  const { items, nextPageToken } = cutPage(machines, size, query, ({ id }) => [id]);
  return { items: await viewMachines(deps, items), nextPageToken };
}

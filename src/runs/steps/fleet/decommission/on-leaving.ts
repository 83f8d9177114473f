import type { MaasMachine } from "../../../../capabilities/fleet/maas-machine.ts";
import { type Effect, move } from "../../../../kernel/effects.ts";
import type { JsonObject } from "../../../../kernel/lifecycle.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import type { FleetNode } from "../../../../lifecycles/fleet-node/fleet-node.ts";
import { fleetNodeLifecycle } from "../../../../lifecycles/fleet-node/lifecycle.ts";
import type { StepContext } from "../../../model/step.ts";
import type { MaasOfSite, OnFleetNode } from "../on-fleet-node.ts";

/** An allocation of the node that has not ended. */
export interface OpenAllocation {
  readonly id: string;
  readonly tenant: string;
  readonly state: string;
  /** Why it could not be released; empty where nothing went wrong. */
  readonly why: string;
}

/** What the stages of a decommission work with, beside what all steps on fleet nodes do. */
export interface OnLeaving extends OnFleetNode {
  openAllocations(): Promise<readonly OpenAllocation[]>;
  /** The credentials of the node's management controller are on record no more. Doing it again is harmless. */
  forgetCredentials(): Promise<void>;
}

/** What every stage is given, frozen when the job started. */
export type LeavingPayload = {
  readonly mode: string;
  readonly isManual: boolean;
  readonly fallsBackToNoErase: boolean;
};

export function parseLeaving({ mode, node_mode, policy }: JsonObject): LeavingPayload {
  const { release_fallback_no_erase } = (policy ?? {}) as JsonObject;
  return {
    mode: typeof mode === "string" ? mode : "",
    isManual: node_mode === "manual",
    fallsBackToNoErase: release_fallback_no_erase === true,
  };
}

export type Leaving = StepContext<LeavingPayload, never, never, OnLeaving>;

/** The node was retired before, by this job or another one: what leads there is done. */
export const isRetired = ({ state }: Pick<FleetNode, "state">): boolean =>
  state.name === "retired" || state.name === "removing";

/** A job that failed has let the node go where it is safe: whoever goes on with it takes the node back first. */
export const drainBegun = ({ id }: Pick<FleetNode, "id">): Effect =>
  move(fleetNodeLifecycle, id, "drain_begun", { ifPossible: true });
export const removalBegun = ({ id }: Pick<FleetNode, "id">): Effect =>
  move(fleetNodeLifecycle, id, "removal_begun", { ifPossible: true });

/** The machine of the node, as MAAS has it. Undefined: MAAS has none, or the node was never bound to one. */
export async function findMachineOf({
  maas,
  target: { facts },
  call,
}: Pick<Leaving, "maas" | "target" | "call">): Promise<{ site: MaasOfSite; machine: MaasMachine | undefined }> {
  const site = await maas();
  const { systemId } = facts;
  return { site, machine: systemId === null ? undefined : await site.maas.findMachine(site.target, systemId, call) };
}

/** A machine that is needed further on must be there. */
export const goneFromMaas = ({ hostname, facts }: FleetNode) =>
  failedAs("machine_deleted_in_maas", `MAAS has no machine of node ${hostname} any more`, {
    name: facts.systemId ?? hostname,
  });

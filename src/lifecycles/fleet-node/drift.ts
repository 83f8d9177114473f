import type { MaasMachine, ObservedMaasState } from "../../capabilities/fleet/maas-machine.ts";
import type { FleetNode } from "./fleet-node.ts";
import type { FleetNodeState } from "./lifecycle.ts";

/** What is wrong where MAAS and the node disagree. A quarantined node keeps it as its reason. */
export const DRIFT_REASONS = {
  machine_deleted_in_maas: "MAAS has no such machine any more",
  identity_mismatch: "MAAS has another server under the name that the node is bound to",
  released_in_maas: "somebody released the machine in MAAS",
  commissioned_in_maas: "somebody commissions or tests the machine in MAAS",
  redeployed_in_maas: "somebody deploys the machine in MAAS",
  failed_in_maas: "an operation on the machine failed in MAAS",
  broken_in_maas: "the machine is marked broken in MAAS",
  not_usable_in_maas: "the machine is in a status in MAAS that nothing can be built on",
  still_in_maas: "the node was removed, and the machine is still in use in MAAS",
} as const;
export type DriftReason = keyof typeof DRIFT_REASONS;

/** Whether that is why a node was quarantined: operators and jobs have reasons of their own. */
export const isDriftReason = (text: string | null): text is DriftReason =>
  text !== null && Object.hasOwn(DRIFT_REASONS, text);

/**
 * fine: as it should be, or nothing to do about it.
 * adopt: MAAS has gone on while no job ran; what it shows is where the next attempt begins.
 * quarantine: nothing may be scheduled there any more.
 * report: not as it should be, and no edge of the node's table is the reconciler's there; people are told.
 */
export type Drift =
  | { readonly is: "fine" }
  | { readonly is: "adopt" }
  | { readonly is: "quarantine" | "report"; readonly reason: DriftReason };

type Word = "fine" | "adopt" | "drift";

/** By which reason each observed state is told, where it is not what it should be. */
const REASON: Readonly<Record<ObservedMaasState, DriftReason>> = {
  New: "released_in_maas",
  Commissioning: "commissioned_in_maas",
  Ready: "released_in_maas",
  Allocated: "released_in_maas",
  Deploying: "redeployed_in_maas",
  Deployed: "still_in_maas",
  "Failed deployment": "redeployed_in_maas",
  Failed: "failed_in_maas",
  Broken: "broken_in_maas",
  absent: "machine_deleted_in_maas",
  Transient: "released_in_maas",
  Other: "not_usable_in_maas",
};

const OBSERVED = Object.keys(REASON) as readonly ObservedMaasState[];
const all = (word: Word): Readonly<Record<ObservedMaasState, Word>> =>
  Object.fromEntries(OBSERVED.map((state) => [state, word])) as Record<ObservedMaasState, Word>;

/**
 * What MAAS should show of a node while no job of it runs (docs/specs/maas-node.md, "Drift"). Transient: MAAS is releasing or erasing;
 * where Ready is expected, it is on its way there.
 */
const EXPECTED: Readonly<Record<FleetNodeState, Readonly<Record<ObservedMaasState, Word>>>> = {
  bootstrap_issued: all("fine"),
  // A job that failed left it somewhere; the next attempt adopts what is there, as far as anything can be built on it.
  enrolling: {
    ...all("drift"),
    ...{ New: "fine", Transient: "fine", Commissioning: "adopt", Ready: "adopt", Allocated: "adopt" },
    ...{ Deploying: "adopt", Deployed: "adopt" },
  },
  active: { ...all("drift"), Deployed: "fine" },
  offline: { ...all("drift"), Deployed: "fine" },
  // Nothing is scheduled there anyway: whoever recovers it looks at what is there.
  quarantined: all("fine"),
  draining: { ...all("drift"), Deployed: "fine", Ready: "fine" },
  retired: { ...all("drift"), Deployed: "fine", Ready: "fine", Transient: "fine" },
  removing: { ...all("drift"), Deployed: "fine", Ready: "fine", Transient: "fine", absent: "fine" },
  deleted: { ...all("drift"), absent: "fine" },
};

/** The states that the reconciler may lead to `quarantined`. In the others a job or an operator decides. */
const QUARANTINED_FROM: ReadonlySet<FleetNodeState> = new Set(["active", "offline"]);

export interface DriftQuestion {
  readonly state: FleetNodeState;
  readonly observed: ObservedMaasState;
  /** Policy of the site: a removed node's machine stays in MAAS. */
  readonly retainInMaas: boolean;
  /** What MAAS shows is the machine that the node was bound to. */
  readonly isSameServer: boolean;
}

/** What follows from what MAAS shows of a node of which no job runs. */
export function driftOf({ state, observed, retainInMaas, isSameServer }: DriftQuestion): Drift {
  const found = (reason: DriftReason): Drift => ({
    is: QUARANTINED_FROM.has(state) ? "quarantine" : "report",
    reason,
  });
  if (state === "deleted" && retainInMaas) return { is: "fine" };
  if (!isSameServer && observed !== "absent" && !INDIFFERENT.has(state)) return found("identity_mismatch");
  const word = EXPECTED[state][observed];
  return word === "drift" ? found(REASON[observed]) : { is: word };
}

/**
 * By the stage that a job failed at: what MAAS shows once people have led the machine on themselves. The next attempt finds that stage done,
 * or on its way. A machine that others have deployed is nobody's to take over unasked.
 */
const LED_ON: Readonly<Record<string, readonly ObservedMaasState[]>> = {
  commission_node: ["Commissioning", "Ready"],
  wait_for_ready: ["Commissioning", "Ready"],
  wait_for_deployed: ["Deployed"],
  recover_for_datasource_retry: ["Ready"],
};

/** Whether a job that failed at the stage, and may be retried, goes on by itself from what MAAS shows now. */
export const leadsOn = (failedStage: string, observed: ObservedMaasState): boolean =>
  LED_ON[failedStage]?.includes(observed) ?? false;

/** Of these nobody cares which server MAAS has under the name. */
const INDIFFERENT: ReadonlySet<FleetNodeState> = new Set(["bootstrap_issued", "quarantined", "deleted"]);

/** A serial number that one side does not know contradicts nothing. */
export const isSameServer = (known: string | null, { serial }: Pick<MaasMachine, "serial">): boolean =>
  known === null || serial === null || known.toLowerCase() === serial.toLowerCase();

/** What people do where no command of ours helps first. */
export const MENDED_IN_MAAS =
  "put that right in MAAS: once the machine is Deployed there, a quarantined node can be recovered";

/** What helps first, as a command; null: nothing of ours, until people have been at the machine in MAAS. */
export function remedyOfDrift({ id, site }: Pick<FleetNode, "id" | "site">, reason: DriftReason): string | null {
  switch (reason) {
    case "machine_deleted_in_maas":
    case "identity_mismatch":
      return `millwright fleet decommission ${id} --mode full_decommission`;
    case "released_in_maas":
    case "redeployed_in_maas":
      // What ran there, runs no more.
      return `millwright fleet decommission ${id} --mode reimage --agent-gone`;
    case "still_in_maas":
      return `millwright fleet candidates --site ${site} --all`;
    case "broken_in_maas":
    case "failed_in_maas":
    case "not_usable_in_maas":
    case "commissioned_in_maas":
      return null;
  }
}

import { type MaasMachine, observedStateOf } from "../../capabilities/fleet/maas-machine.ts";
import { type Drift, driftOf, isSameServer, leadsOn } from "../../lifecycles/fleet-node/drift.ts";
import type { NewObservation, WatchedNode } from "../../store/fleet/observations.ts";

/** What a listing says of a node. */
export interface Judged extends NewObservation {
  readonly node: WatchedNode;
  /** What is on record says something else. */
  readonly isNew: boolean;
}

/** What follows from what MAAS shows of a node; while a job runs, what it shows is the job's affair. */
export function judgeNode(node: WatchedNode, machine: MaasMachine | undefined, retainInMaas: boolean): Judged {
  const { state, serial, hasActiveRun } = node;
  const observed = observedStateOf(machine);
  const same = machine === undefined || isSameServer(serial, machine);
  const drift: Drift = hasActiveRun ? { is: "fine" } : driftOf({ state, observed, retainInMaas, isSameServer: same });
  return judgedAs({ node, observed, machine }, drift);
}

export function judgedAs(
  { node, observed, machine }: Pick<Judged, "node" | "observed" | "machine">,
  drift: Drift,
): Judged {
  const { id: nodeId, systemId, known, state, lastRun, hasActiveRun } = node;
  const idleRun = hasActiveRun ? null : lastRun;
  const isNew =
    known === null ||
    known.systemId !== systemId ||
    known.observed !== observed ||
    known.statusName !== (machine?.statusName ?? "") ||
    known.power !== (machine?.power ?? "unknown") ||
    known.verdict !== drift.is ||
    known.drift !== ("reason" in drift ? drift.reason : null) ||
    // Only of these it decides anything: whether people have led the machine on since the job failed.
    (state === "enrolling" && known.idleRun !== idleRun);
  return { node, nodeId, systemId, observed, machine, drift, idleRun, isNew };
}

/**
 * Whether people have led the machine on in MAAS since the job failed: MAAS showed something else when the job had ended already. What
 * the job itself has left there is no reason to begin it again, or one that fails would be begun for ever.
 */
export const isLedOn = ({ node: { known, failedStage, systemId }, observed, idleRun, drift }: Judged): boolean =>
  drift.is === "adopt" &&
  failedStage !== null &&
  known !== null &&
  known.systemId === systemId &&
  known.idleRun !== null &&
  known.idleRun === idleRun &&
  known.observed !== observed &&
  leadsOn(failedStage, observed);

/** MAAS listed none of that id. Whether it really has none is asked of it once: a listing may leave out what the key may not see. */
export const isNewlyAbsent = ({ known, systemId }: WatchedNode, machine: MaasMachine | undefined): boolean =>
  machine === undefined && !(known?.systemId === systemId && known.observed === "absent");

/** Of few nodes any number may drift at once. */
const FEW = 10;

/**
 * Whether so many nodes drift at once that MAAS itself is the likelier one to be wrong: a region that was restored from an old backup,
 * or another one at the same address. Then nobody is quarantined until people have looked.
 */
export function isTooMuch(judged: readonly Judged[]): boolean {
  const inUse = judged.filter(({ node: { state } }) => state === "active" || state === "offline").length;
  const drifting = judged.filter(({ drift }) => drift.is === "quarantine").length;
  return drifting > FEW && drifting * 2 > inUse;
}

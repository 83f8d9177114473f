import type { ObservedCondition } from "../../lifecycles/machine/conditions.ts";
import type { RunEndCause } from "../../lifecycles/machine/lifecycle.ts";
import type { PhaseAfterRun } from "../../lifecycles/machine/machine.ts";
import { OWN_TROUBLES } from "../../lifecycles/machine/observation.ts";
import type { Plan } from "../model/plan.ts";
import type { EndedRunPhase } from "../model/run.ts";

/**
 * The phase of a machine once a run of the plan has succeeded; null for the one that it had before. What a plan does last to
 * the machine's place in the world decides: a return to the vendor, a cluster, a fresh system.
 */
export function phaseOnSuccess({ steps }: Pick<Plan, "steps">): PhaseAfterRun | null {
  const has = (kind: string) => steps.some((step) => step.kind === kind);
  if (has("rma")) return "RMA";
  if (endsJoined({ steps })) return "IN_SERVICE";
  return has("repave") ? "READY" : null;
}

/** An installation wipes whatever was joined before it. */
const endsJoined = (plan: Pick<Plan, "steps">): boolean => lastJoinOf(plan) !== undefined;
function lastJoinOf({ steps }: Pick<Plan, "steps">): Plan["steps"][number] | undefined {
  const last = steps.findLast(({ kind }) => kind === "join" || kind === "repave");
  return last?.kind === "join" ? last : undefined;
}

/** What the end of a run tells its machine, by the table of the machine's lifecycle. */
export const CAUSE_OF_END = {
  SUCCEEDED: "run_succeeded",
  FAILED: "run_failed",
  CANCELED: "run_canceled",
} as const satisfies Record<EndedRunPhase, RunEndCause>;

/**
 * What the end of a run makes known of its machine; written in the same commit as the end and the machine's phase. All else is
 * for the reconciler to see. A cancel was wanted, so it calls for nobody.
 */
export function conditionsAtEnd(
  plan: Pick<Plan, "steps">,
  phase: EndedRunPhase,
  message: string,
  before: readonly ObservedCondition[],
): ObservedCondition[] {
  if (phase === "CANCELED") return [];
  if (phase === "FAILED") return [{ type: "NeedsIntervention", status: true, reason: "RunFailed", message }];
  const has = (kind: string) => plan.steps.some((step) => step.kind === kind);
  const conditions: ObservedCondition[] = isForLooksToEnd(before, has("repave"))
    ? []
    : [{ type: "NeedsIntervention", status: false, reason: "RunSucceeded", message: "" }];
  if (has("repave")) conditions.push({ type: "Provisioned", status: true, reason: "RepaveVerified", message: "" });
  const joined = lastJoinOf(plan);
  if (joined) {
    // Frozen into the plan of the run: what the machine's owner names is where it is to be, and may be another one by now.
    const cluster = typeof joined.payload.cluster_ref === "string" ? joined.payload.cluster_ref : "";
    const where = cluster === "" ? "" : `cluster ${cluster}`;
    conditions.push({ type: "InCustomerCluster", status: true, reason: "JoinVerified", message: where });
  }
  return conditions;
}

/** What is wrong about a machine's identity is not right because a run went well; but an installation proves another host key. */
const isForLooksToEnd = (before: readonly ObservedCondition[], isInstalled: boolean): boolean =>
  before.some(
    ({ type, status, reason }) =>
      type === "NeedsIntervention" &&
      status &&
      OWN_TROUBLES.some((own) => own === reason) &&
      !(isInstalled && reason === "HostKeyChanged"),
  );

/**
 * What runs have left behind on the machine and nobody has seen to, each once. A run that made something new of the machine has
 * done away with it; a mere reboot has not.
 */
export function residueAfter(plan: Pick<Plan, "steps">, phase: EndedRunPhase, left: readonly string[]): string[] {
  return phase === "SUCCEEDED" && phaseOnSuccess(plan) !== null ? [] : [...new Set(asTriedLast(left))];
}

/** How a line of residue ends that was to be undone, and is not: nobody answered to it (yet), or the device said no. */
export const notUndone = (how: "failed" | "was refused", why: string): string => ` (undoing it ${how}: ${why})`;
const NOT_UNDONE = / \(undoing it (?:failed|was refused): /;
const REFUSED = / \(undoing it was refused: /;

/** What was tried to be undone again, in vain, is listed once: with why it failed the last time. */
function asTriedLast(residue: readonly string[]): string[] {
  const beginningOf = (line: string) => line.split(NOT_UNDONE, 1)[0];
  const isTriedAgain = (line: string, later: readonly string[]) =>
    later.some((other) => NOT_UNDONE.test(other) && beginningOf(other) === beginningOf(line));
  return residue.filter(
    (line, at) => !NOT_UNDONE.test(line) || REFUSED.test(line) || !isTriedAgain(line, residue.slice(at + 1)),
  );
}

/**
 * What steps left that were done after all is no more, by how its lines begin; what a device refused to take back may be there
 * beside it.
 */
export const withoutResidueOf = (done: readonly string[], residue: readonly string[]): string[] =>
  residue.filter((line) => !done.some((begins) => line.startsWith(begins)) || REFUSED.test(line));

/**
 * What could not be taken back, and was later: no more is left of it, but for what its step has done for good.
 *
 * @param undone How its lines begin, and of each whether undoing it unmakes all that its step did.
 */
export const withoutUndone = (undone: ReadonlyMap<string, boolean>, residue: readonly string[]): string[] =>
  residue.flatMap((line) => {
    const isWhole = [...undone].find(([begins]) => line.startsWith(begins))?.[1];
    if (isWhole === undefined || !NOT_UNDONE.test(line)) return [line];
    return isWhole ? [] : [line.slice(0, line.search(NOT_UNDONE))];
  });

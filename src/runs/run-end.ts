import type { ObservedCondition } from "../lifecycles/machine/conditions.ts";
import type { RunEndCause } from "../lifecycles/machine/lifecycle.ts";
import type { PhaseAfterRun } from "../lifecycles/machine/machine.ts";
import type { Plan } from "./plan.ts";
import type { EndedRunPhase } from "./run.ts";

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
const endsJoined = ({ steps }: Pick<Plan, "steps">): boolean =>
  steps.findLast(({ kind }) => kind === "join" || kind === "repave")?.kind === "join";

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
export function conditionsAtEnd(plan: Pick<Plan, "steps">, phase: EndedRunPhase, message: string): ObservedCondition[] {
  if (phase === "CANCELED") return [];
  if (phase === "FAILED") return [{ type: "NeedsIntervention", status: true, reason: "RunFailed", message }];
  const conditions: ObservedCondition[] = [
    { type: "NeedsIntervention", status: false, reason: "RunSucceeded", message: "" },
  ];
  const has = (kind: string) => plan.steps.some((step) => step.kind === kind);
  if (has("repave")) conditions.push({ type: "Provisioned", status: true, reason: "RepaveVerified", message: "" });
  if (endsJoined(plan))
    conditions.push({ type: "InCustomerCluster", status: true, reason: "JoinVerified", message: "" });
  return conditions;
}

/**
 * What runs have left behind on the machine and nobody has seen to, each once. A run that made something new of the machine has
 * done away with it; a mere reboot has not.
 */
export function residueAfter(plan: Pick<Plan, "steps">, phase: EndedRunPhase, left: readonly string[]): string[] {
  return phase === "SUCCEEDED" && phaseOnSuccess(plan) !== null ? [] : [...new Set(left)];
}

/** What steps left that were done after all is no more, by their names; lines of residue begin with the step that left it. */
export const withoutResidueOf = (done: readonly string[], residue: readonly string[]): string[] =>
  residue.filter((line) => !done.some((name) => line.startsWith(`${name}: `)));

import type { Cause } from "../../kernel/causes.ts";
import { isSameLeft, type Residue, residueLine } from "../../kernel/residue.ts";
import type { ObservedCondition } from "../../lifecycles/machine/conditions.ts";
import type { RunEndCause } from "../../lifecycles/machine/lifecycle.ts";
import type { PhaseAfterRun } from "../../lifecycles/machine/machine.ts";
import { NOT_PROVEN, OWN_TROUBLES } from "../../lifecycles/machine/observation.ts";
import { eachOnce } from "../executor/residue.ts";
import type { Plan, Step } from "../model/plan/plan.ts";
import type { EndedRunPhase } from "../model/run.ts";
import type { StepKinds } from "./target-kind.ts";

type Steps = Pick<Plan, "steps">;

/**
 * The phase of a machine once a run of the plan has succeeded; null for the one that it had before. What a plan does last to
 * the machine's place in the world decides: a cluster, a fresh system. A return to the vendor ends all others.
 */
export function phaseOnSuccess({ steps }: Steps, kinds: StepKinds): PhaseAfterRun | null {
  const phases = steps.flatMap(({ kind }) => kinds.get(kind)?.endsIn ?? []);
  return phases.includes("RMA") ? "RMA" : (phases.at(-1) ?? null);
}

/** Whether the plan makes the machine's system anew. */
export const replacesSystem = ({ steps }: Steps, kinds: StepKinds): boolean =>
  steps.some(({ kind }) => kinds.get(kind)?.replacesSystem === true);

/** The step that makes the machine a node; undefined where there is none. An installation wipes whatever was joined before it. */
function lastJoinOf({ steps }: Steps, kinds: StepKinds): Step | undefined {
  const last = steps.findLast(({ kind }) => kinds.get(kind)?.joinsCluster || kinds.get(kind)?.replacesSystem);
  return last !== undefined && kinds.get(last.kind)?.joinsCluster ? last : undefined;
}

/** What the end of a run tells its machine, by the table of the machine's lifecycle. */
export const CAUSE_OF_END = {
  SUCCEEDED: "run_succeeded",
  FAILED: "run_failed",
  CANCELED: "run_canceled",
} as const satisfies Record<EndedRunPhase, RunEndCause>;

export interface MachineRunEnd {
  readonly phase: EndedRunPhase;
  readonly message: string;
  readonly cause?: Cause;
  readonly before: readonly ObservedCondition[];
  /** What stays behind on the machine, of this run and of those before. */
  readonly residue: readonly Residue[];
}

/**
 * What the end of a run makes known of its machine; written in the same commit as the end and the machine's phase. All else is
 * for the reconciler to see. A cancel was wanted, so it calls for nobody.
 */
export function conditionsAtEnd(
  plan: Steps,
  kinds: StepKinds,
  { phase, message, cause, before, residue }: MachineRunEnd,
): ObservedCondition[] {
  const unproven = phase === "SUCCEEDED" ? [] : notProven(plan, kinds, residue);
  if (phase === "CANCELED") return unproven;
  if (phase === "FAILED")
    return [
      ...unproven,
      { type: "NeedsIntervention", status: true, reason: "RunFailed", message, ...(cause && { cause }) },
    ];
  const isInstalled = replacesSystem(plan, kinds);
  const conditions: ObservedCondition[] = isForChecksToEnd(before, isInstalled)
    ? []
    : [{ type: "NeedsIntervention", status: false, reason: "RunSucceeded", message: "" }];
  if (isInstalled) conditions.push({ type: "Provisioned", status: true, reason: "RepaveVerified", message: "" });
  const joined = lastJoinOf(plan, kinds);
  if (joined) {
    // Frozen into the plan of the run: what the machine's owner names is where it is to be, and may be another one by now.
    const cluster = typeof joined.payload.cluster_ref === "string" ? joined.payload.cluster_ref : "";
    const where = cluster === "" ? "" : `cluster ${cluster}`;
    conditions.push({ type: "InCustomerCluster", status: true, reason: "JoinVerified", message: where });
  }
  return conditions;
}

/** What was on the disk may be lost, whatever an installation before it has proven. */
function notProven({ steps }: Steps, kinds: StepKinds, residue: readonly Residue[]): ObservedCondition[] {
  const begun = steps.flatMap(({ name, kind, payload }) => {
    const { replacesSystem: isInstallation, residue: leaves } = kinds.get(kind) ?? {};
    return isInstallation && leaves ? [{ step: name, what: leaves(payload) }] : [];
  });
  const left = residue.filter((one) => begun.some((installation) => isSameLeft(installation, one)));
  if (left.length === 0) return [];
  const message = eachOnce(left).map(residueLine).join("; ");
  return [{ type: "Provisioned", status: false, reason: NOT_PROVEN, message }];
}

/** What is wrong about a machine's identity is not right because a run went well; but an installation proves another host key. */
const isForChecksToEnd = (before: readonly ObservedCondition[], isInstalled: boolean): boolean =>
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
export const residueAfter = (
  plan: Steps,
  kinds: StepKinds,
  { phase, residue }: { readonly phase: EndedRunPhase; readonly residue: readonly Residue[] },
): Residue[] => (phase === "SUCCEEDED" && phaseOnSuccess(plan, kinds) !== null ? [] : eachOnce(residue));

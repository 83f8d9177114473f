import { type Effect, move } from "../../kernel/effects.ts";
import { AppError } from "../../kernel/errors.ts";
import { readResidue, residueFacts } from "../../kernel/residue.ts";
import { installLifecycle } from "../../lifecycles/install/lifecycle.ts";
import { machineLifecycle, runStartedData } from "../../lifecycles/machine/lifecycle.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { seenAt } from "../executor/progress.ts";
import type { RunThing } from "../model/lifecycle.ts";
import type { LeftByStep } from "../model/next-attempt.ts";
import type { Step } from "../model/plan/plan.ts";
import { whenRackFlashes, whenRackHasFlashed } from "./host-reprovision.ts";
import { CAUSE_OF_END, conditionsAtEnd, phaseOnSuccess, replacesSystem, residueAfter } from "./machine-after-run.ts";
import { settlingClusters } from "./machine-clusters.ts";
import type { RunEnd, RunOn, StepKinds, TargetKind } from "./target-kind.ts";

/**
 * A machine is PROVISIONING while a run of its own works on it. The end of the run leads it on, lists what stays behind, and releases an
 * install that the run ordered: an install does not outlive its run. A run on behalf of another thing, such as the machine's rack,
 * leaves the phase alone: its failure is the rack's, and the machine may be in a phase that knows no run.
 */
export const machineTarget: TargetKind<Machine> = {
  kind: machineLifecycle.kind,
  slotOf: ({ id }) => ({ machineId: id }),
  whyNoRun: ({ id, state }) =>
    state.name === "RETIRED"
      ? [new AppError("failed_precondition", `machine ${id} is RETIRED: nothing can be done with it`)]
      : [],
  whenStarted(run, steps) {
    const { id, jobId, plan, target } = run;
    if (isForAnother(run)) return whenRackFlashes(run);
    const data = runStartedData({ run: id, job: jobId }, phaseOnSuccess(plan, steps));
    return [move(machineLifecycle, target.id, "run_started", { data })];
  },
  whenEnded(run, end, steps) {
    if (isForAnother(run)) return whenRackHasFlashed(run, end);
    return [endOf(run, end, steps), ...installReleased(run, end, steps)];
  },
  settling: settlingClusters,
  residueOf: ({ facts }) => readResidue(facts),
  endsLeftOver: insideOfReplaced,
  signInRemedy: ({ id }) => `millwright machine set-credentials ${id} gives others`,
};

const isForAnother = ({ id, holder }: RunThing): boolean => holder.id !== id;

function endOf(
  { id, plan, target }: RunOn<Machine>,
  { phase, message, cause, at, residue }: RunEnd,
  steps: StepKinds,
): Effect {
  const { conditions: before } = target.thing;
  const known = { phase, message, before, residue, ...(cause && { cause }) };
  return move(machineLifecycle, target.id, CAUSE_OF_END[phase], {
    // Where there is none, the history tells what happened by its cause, and not by an empty text.
    ...(message !== "" && { message }),
    facts: { lastRunId: id, ...residueFacts(residueAfter(plan, steps, { phase, residue })) },
    observed: seenAt(conditionsAtEnd(plan, steps, known), at),
  });
}

/** Who canceled a run does not want the machine installed at its next boot after all. */
function installReleased({ id, plan, target }: RunThing, { phase, message }: RunEnd, steps: StepKinds): Effect[] {
  if (!replacesSystem(plan, steps)) return [];
  const why = `run ${id} ended ${phase}${message === "" ? "" : `: ${message}`}`;
  return [move(installLifecycle, target.id, "run_ended", { ifPossible: true, message: why })];
}

/** What goes on inside a system that the attempt has still to replace, and in which it begins nothing before. */
function insideOfReplaced({ plan, facts }: RunThing, kinds: StepKinds): (left: LeftByStep) => string | undefined {
  const isProven = (name: string) => facts.steps.some((visit) => visit.name === name && visit.state === "SUCCEEDED");
  const toDo = plan.steps.filter(({ name }) => !isProven(name));
  if (!isReplacedFirst(toDo, kinds)) return () => undefined;
  const kindOf = (name: string) => plan.steps.find((step) => step.name === name)?.kind ?? "";
  return ({ step }) => (kinds.get(kindOf(step))?.insideSystem === true ? "the installation ends it" : undefined);
}

/**
 * Whether of what comes after the step nothing wants anything of the system as it is before another one is installed, or before the
 * machine goes out of use.
 */
export function isReplacedAfter({ name }: Step, steps: readonly Step[], kinds: StepKinds): boolean {
  const after = steps.slice(steps.findIndex((each) => each.name === name) + 1);
  return isReplacedFirst(after, kinds) || isGivenAway(after, kinds);
}

const isGivenAway = (steps: readonly Step[], kinds: StepKinds): boolean =>
  steps.some(({ kind }) => kinds.get(kind)?.endsIn === "RMA") &&
  steps.every(({ kind }) => kinds.get(kind)?.fromOutside === true);

const isReplacedFirst = (steps: readonly Step[], kinds: StepKinds): boolean => {
  const first = steps.find(({ kind }) => kinds.get(kind)?.fromOutside !== true);
  return first !== undefined && kinds.get(first.kind)?.replacesSystem === true;
};

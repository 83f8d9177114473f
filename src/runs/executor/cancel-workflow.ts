import { waitFor } from "../../kernel/outcome.ts";
import { type Residue, residueLine } from "../../kernel/residue.ts";
import { describeDuration } from "../../kernel/time/duration.ts";
import { type RunThing, stepJson } from "../model/lifecycle.ts";
import { eachLeft, type LeftByStep, type LeftOver, leftOverOf } from "../model/next-attempt.ts";
import { timeoutOf } from "../model/plan/plan.ts";
import type { StepStatus } from "../model/run.ts";
import { openOf, workOf } from "../workflows/next-attempt.ts";
import type { Workflow } from "../workflows/workflow.ts";
import { leaveToAnotherServer, mayAnotherServerCome } from "./another-server.ts";
import { endCanceled, isUnderWay } from "./end-canceled.ts";
import { endWithoutSuccess } from "./end-without-success.ts";
import { stepsWith } from "./progress.ts";
import { withMoreResidue } from "./residue.ts";
import type { RunContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";
import * as visits from "./step/visit.ts";
import { AT_ONCE, type PassOutcome, pollAfter } from "./step/work.ts";
import { forgetResidueOf, isSettled, type Remains, staysAnyway, undoAll, undoStep, whatIsLeftBy } from "./undo.ts";

/** One thing to undo: what a visit of this attempt did or began, or what an earlier attempt did. */
interface ToUndo {
  readonly left: LeftByStep;
  /** Where it is noted: the visit, or the list of what attempts did whose visits this one does not have. */
  readonly at: StepStatus | "doneBefore" | "compensateFirst";
  /** It was proven: what its stage says of compensation holds, and not only what its kind can undo. */
  readonly isProven: boolean;
}

/**
 * Undoes what the job of a workflow has done, the last first. One stage a pass, so that each is on record before the one before it is
 * touched. What cannot be undone is listed and kept for the attempt after. It always ends: a device that does not answer is asked
 * once, and an undo that goes on by itself gets as long as its stage.
 */
export async function compensate(
  run: RunThing,
  workflow: Workflow | undefined,
  context: RunContext,
  log: RunLog,
): Promise<PassOutcome> {
  if (workflow === undefined) return withoutWorkflow(run, context, log);
  const [next] = eachToUndo(run, workflow);
  if (next === undefined) {
    const earlier = await undoAll(run, eachOf(run.facts.takeBackFirst), context, log);
    return endCanceled(run, { earlier }, context, log);
  }
  const { step } = next.left;
  const stays = next.isProven ? staysOf(workflow, step) : undefined;
  const remains: Remains | null = stays === undefined ? await undoStep({ run, ...next.left }, context, log) : null;
  if (remains?.cause.code === "not_on_this_server" && mayAnotherServerCome(run, context))
    return leaveToAnotherServer(`compensating: ${residueLine(remains.left)}`);
  if (remains?.is === "going_on" && !isLate(run, step, context)) return goOnUndoing(run, remains, context, log);
  const left = stays === undefined ? whatIsLeft(next, run, remains, context) : { step, what: stays };
  if (left !== null) log.staysBehind(left);
  if (isSettled(remains)) forgetResidueOf([next.left], run, context, log);
  return waitFor(`compensating: ${step} is seen to`, AT_ONCE, {
    facts: {
      ...seenTo(run, next, isSettled(remains), context),
      ...(left !== null && withMoreResidue(run.facts, [left])),
      ...(run.facts.undoingSince !== null && { undoingSince: null }),
    },
    effects: log.effects(step),
  });
}

/**
 * Only the workflow says what of its stages is undone. Where no server that knows it comes, the run ends with all of it listed, and
 * leaves it as it is to the attempt after.
 */
async function withoutWorkflow(run: RunThing, context: RunContext, log: RunLog): Promise<PassOutcome> {
  const why = `this server does not know workflow ${run.plan.workflow}`;
  if (mayAnotherServerCome(run, context)) return leaveToAnotherServer(`compensating: ${why}`);
  const { takeBackFirst, compensateFirst } = run.facts;
  const left = [...eachToUndo(run, undefined).map((each) => each.left), ...eachOf(takeBackFirst)];
  const cause = { code: "not_on_this_server", facts: { what: "workflow", name: run.plan.workflow ?? "" } } as const;
  const residue = whatIsLeftBy(left, run, context).map(
    (one): Residue => ({ ...one, notUndone: { how: "failed", why, cause } }),
  );
  for (const one of residue) log.staysBehind(one);
  log.say("the run was canceled");
  const steps = run.facts.steps.map((visit) =>
    isUnderWay(visit) ? visits.canceled(visit, context.clock.now()) : visit,
  );
  return endWithoutSuccess(run, "CANCELED", context, log, {
    residue,
    notUndone: left.map(({ step }) => step),
    takeBackFirst,
    compensateFirst,
    steps,
  });
}

const staysOf = ({ stages }: Workflow, name: string): string | undefined => {
  const compensation = stages.find((stage) => stage.name === name)?.compensation;
  return typeof compensation === "object" ? compensation.stays : undefined;
};

/** The last first: what was canceled in the middle of a stage before what was done, and what this attempt did before all others. */
function eachToUndo({ facts }: RunThing, workflow: Workflow | undefined): readonly ToUndo[] {
  const isNothing = (name: string) => workflow?.stages.find((stage) => stage.name === name)?.compensation === "nothing";
  const ofVisit = (visit: StepStatus): readonly ToUndo[] => {
    if (visit.takenBack) return [];
    const [open] = openOf(visit);
    if (open) return [{ left: open, at: visit, isProven: false }];
    return isNothing(visit.name) ? [] : workOf(visit).map((left) => ({ left, at: visit, isProven: true }));
  };
  const { doneBefore, compensateFirst } = facts;
  return [
    ...facts.steps.toReversed().flatMap(ofVisit),
    ...doneBefore
      .filter(({ step }) => !isNothing(step))
      .map((left): ToUndo => ({ left, at: "doneBefore", isProven: true }))
      .toReversed(),
    ...eachOf(compensateFirst).map((left): ToUndo => ({ left, at: "compensateFirst", isProven: true })),
  ];
}

const isLate = ({ plan, facts: { undoingSince } }: RunThing, name: string, { clock }: RunContext): boolean => {
  const step = plan.steps.find((one) => one.name === name);
  return (
    step !== undefined && undoingSince !== null && clock.now().getTime() - undoingSince.getTime() > timeoutOf(step)
  );
};

function goOnUndoing(run: RunThing, { left }: Remains, { clock }: RunContext, log: RunLog): PassOutcome {
  const { undoingSince } = run.facts;
  return waitFor(`compensating: ${residueLine(left)}`, pollAfter(undoingSince, clock), {
    ...(undoingSince === null && { facts: { undoingSince: clock.now().toISOString() } }),
    effects: log.effects(""),
  });
}

function whatIsLeft({ left }: ToUndo, run: RunThing, remains: Remains | null, context: RunContext): Residue | null {
  const planned = run.plan.steps.find(({ name }) => name === left.step);
  if (remains?.is === "going_on")
    return {
      ...remains.left,
      found: `${remains.left.found} (not done within ${describeDuration(planned ? timeoutOf(planned) : AT_ONCE)})`,
    };
  return remains?.left ?? staysAnyway({ run, ...left }, context);
}

/** Nobody undoes it a second time in this run; where a device did not answer, the attempt after does. */
function seenTo({ facts, ...run }: RunThing, { at, left }: ToUndo, settled: boolean, { clock }: RunContext) {
  if (typeof at === "object")
    return { steps: stepsWith({ ...run, facts }, undone(at, settled, clock.now())).map(stepJson) };
  const { doneBefore, compensateFirst, takeBackFirst } = facts;
  const rest =
    at === "doneBefore"
      ? { doneBefore: doneBefore.toSpliced(doneBefore.lastIndexOf(left), 1) }
      : { compensateFirst: storedLeft(eachOf(compensateFirst).slice(1)) };
  return settled ? rest : { ...rest, takeBackFirst: storedLeft([...eachOf(takeBackFirst), left]) };
}

const eachOf = (left: LeftOver | null): readonly LeftByStep[] => (left ? eachLeft(left) : []);

const storedLeft = (left: readonly LeftByStep[]) => {
  const over = leftOverOf(left);
  return over && { ...over };
};

function undone(visit: StepStatus, settled: boolean, now: Date): StepStatus {
  if (visit.state === "SUCCEEDED") return visits.takenBack(visit, { isSettled: settled });
  const ended = isUnderWay(visit) ? visits.canceled(visit, now) : visit;
  return { ...(settled ? visits.settled(ended) : ended), takenBack: true };
}

import type { Cause } from "../../kernel/causes.ts";
import { type Handlers, happened, waitFor } from "../../kernel/outcome.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import { HeardScript } from "../model/heard-script.ts";
import { endsUnbegun, type RunThing, type runLifecycle } from "../model/lifecycle.ts";
import { type NextStep, nextInPlan } from "../model/next-step.ts";
import type { Step } from "../model/plan/plan.ts";
import type { ManualMark, StepStatus } from "../model/run.ts";
import { nextInWorkflow } from "../workflows/next-stage.ts";
import { abandonRun } from "./abandon.ts";
import { leaveToAnotherServer } from "./another-server.ts";
import { cancelRun } from "./cancel-plan.ts";
import { compensate } from "./cancel-workflow.ts";
import { endEarlierChildren, stopChildren, untilChildrenEnd } from "./children.ts";
import { cleanUpBefore } from "./clean-up-before.ts";
import { endRun } from "./end.ts";
import { endWithoutSuccess } from "./end-without-success.ts";
import { type Proven, startOf, withProof, writtenWith } from "./progress.ts";
import { effectsOfEnd, effectsOfStart, type RunContext, residueOnTarget } from "./run-context.ts";
import { createRunLog, type RunLog } from "./run-log.ts";
import { workOn } from "./step/advance.ts";
import { endStream } from "./step/stream.ts";
import { withProgress } from "./step/told-progress.ts";
import { followToItsEnd, keepsItsStream, untilProven } from "./step/unproven.ts";
import * as visits from "./step/visit.ts";
import { AT_ONCE, type PassOutcome } from "./step/work.ts";

export type { RunContext } from "./run-context.ts";

const LONG_LOOK: Duration = seconds(1);

/**
 * Carries out a run, one short look at a time: each pass does one thing to a device at most and is then committed.
 *
 * A step's intent is persisted with its evidence before anything is done; then that an action begins, and by whom; then that it
 * was done. So any replica knows after a crash how far it came, and asks the device before it acts again.
 */
export const runHandlers: Handlers<typeof runLifecycle, RunThing, RunContext> = {
  async PENDING(run, context) {
    const now = context.clock.now();
    if (endsUnbegun(run)) {
      const end = { phase: "CANCELED", message: "canceled before it began", at: now, residue: [] } as const;
      return happened("canceled", {
        message: end.message,
        facts: { finishedAt: now.toISOString() },
        effects: effectsOfEnd(run, { ...end, residue: residueOnTarget(run, context) }, context),
      });
    }
    return happened("started", {
      facts: { startedAt: now.toISOString() },
      effects: effectsOfStart(run, context),
    });
  },

  async RUNNING(run, context) {
    const heard = new HeardScript(run.facts.heard);
    return withProgress(run, context, heard.addedTo(await passOver(run, context, heard)));
  },
};

async function passOver(run: RunThing, context: RunContext, heard: HeardScript): Promise<PassOutcome> {
  const log = createRunLog(run.id, context.clock, heard);
  const { plan, facts } = run;
  if (run.abandonedAt) return abandonRun(run, context, log);
  if (run.cancelRequestedAt !== null) {
    if (!keepsItsStream(run, context, log)) await endStream(context, "the run is being canceled");
    const stopping = stopChildren(run, context, log, "the run is being canceled");
    if (stopping) return stopping;
    const following = await followToItsEnd(run, context, log);
    if (following) return following;
    return plan.workflow === undefined
      ? cancelRun(run, context, log)
      : compensate(run, context.workflows.get(plan.workflow), context, log);
  }
  if (facts.unproven) return untilProven(run, context, log);
  // What was left open came last. An adoption looks first: what is left open is for the stage that has to act.
  const first = (run.action === "adopt" ? null : facts.takeBackFirst) ?? facts.compensateFirst;
  if (first !== null) return cleanUpBefore(run, first, context, log);
  return goThrough(run, context, heard);
}

/**
 * What is proven is written with the announcement of the next action, or with the run's end: in between things are only read, and
 * a crash there costs no more than asking again. A pass that has lasted is written first; so is that of a process that is being
 * stopped, which begins nothing more.
 */
async function goThrough(run: RunThing, context: RunContext, heard: HeardScript): Promise<PassOutcome> {
  const { clock } = context;
  const startedAt = clock.monotonic();
  let progress = startOf(run);
  for (;;) {
    const isLong = clock.monotonic() - startedAt > LONG_LOOK;
    if (progress.proven !== null && (isLong || context.call.mayBegin?.() === false))
      return writtenWith(progress, waitFor(`${progress.proven}: done`, AT_ONCE));
    const looked = await lookAtNext(progress.run, context, createRunLog(run.id, clock, heard));
    if (looked.type !== "proven") return writtenWith(progress, looked);
    progress = withProof(progress, looked);
  }
}

async function lookAtNext(run: RunThing, context: RunContext, log: RunLog): Promise<PassOutcome | Proven> {
  const next = nextOf(run, context);
  if (next === undefined) return leaveToAnotherServer(`this server does not know workflow ${run.plan.workflow}`);
  if (next.type === "finished") return untilChildrenEnd(run, context) ?? endRun(run, "SUCCEEDED", context, log, {});
  const step = run.plan.steps[next.index] as Step;
  if (next.type === "misfit") return endMisfit(run, step, next.why, context, log);
  if (run.manual !== null && isToBeEntered(run, next)) return endTakenOver(run, step, run.manual, context, log);
  const ending = isToBeEntered(run, next) ? endEarlierChildren(run, context, log) : undefined;
  if (ending) return ending;
  if (next.type === "skip") return skipStep(step, next, context, log);
  const visit = next.visit === undefined ? undefined : run.facts.steps[next.visit];
  if (next.type === "failed") return endFailed(run, step, { ...next, visit }, context, log);
  if (visit?.state === "WAITING" && visit.evidence !== null)
    log.say(`step ${step.name}: looking first, by what the attempt before had noted`);
  return workOn(run, step, visit ? begunVisit(visit, context.clock) : newVisit(step, next, context, log), context, log);
}

/** What a plan or a workflow says; undefined where another server has the workflow, and not this one. */
function nextOf({ plan, params, facts }: RunThing, { workflows }: RunContext): NextStep | undefined {
  if (plan.workflow === undefined) return nextInPlan(plan, facts.steps);
  const workflow = workflows.get(plan.workflow);
  return workflow && nextInWorkflow(workflow, { plan, visits: facts.steps, params });
}

const begunVisit = (visit: StepStatus, clock: Clock): StepStatus =>
  visit.state === "WAITING" ? visits.begin(visit, clock.now()) : visit;

function newVisit(
  step: Step,
  { round = 1 }: { readonly round?: number },
  { clock }: RunContext,
  log: RunLog,
): StepStatus {
  if (round > 1) log.say(`step ${step.name} is entered again, round ${round}`);
  return visits.beginVisit(step, clock.now(), round);
}

function skipStep(
  step: Step,
  { round, why }: { readonly round: number; readonly why: string },
  { clock }: RunContext,
  log: RunLog,
): Proven {
  log.say(`step ${step.name} is skipped: ${why}`);
  const visit = visits.skipped(step, round, why, clock.now());
  return { type: "proven", visit, report: { state: "done" }, said: log.effects(step.name) };
}

/** Another pass would not make it fit. What was begun stays with its step: the attempt after undoes it first. */
async function endMisfit(
  run: RunThing,
  step: Step,
  why: string,
  context: RunContext,
  log: RunLog,
): Promise<PassOutcome> {
  const stopping = stopChildren(run, context, log, why);
  if (stopping) return stopping;
  const message = `${step.name}: ${why}; millwright run rerun ${run.id} starts again`;
  log.say(message, "stderr");
  const finishedAt = context.clock.now();
  const steps = run.facts.steps.map((visit) =>
    visit.state === "RUNNING" ? { ...visit, state: "FAILED" as const, finishedAt, nextAttemptAt: null } : visit,
  );
  const cause = { code: "misfit" } as const;
  const failure = { code: "PANIC", retryable: false, step: step.name, cause } as const;
  return endWithoutSuccess(run, "FAILED", context, log, { message, failure, steps });
}

/** Nothing of it was begun. */
const isToBeEntered = ({ facts }: RunThing, next: NextStep): boolean =>
  next.type === "skip" ||
  (next.type === "run" && (next.visit === undefined || facts.steps[next.visit]?.state === "WAITING"));

/** People have taken over what the run was at: it ends between two steps, and what is done stays done. */
async function endTakenOver(
  run: RunThing,
  step: Step,
  { by, comment }: ManualMark,
  context: RunContext,
  log: RunLog,
): Promise<PassOutcome> {
  const stopping = stopChildren(run, context, log, `${by} took the job over`);
  if (stopping) return stopping;
  const message = `${step.name}: not entered, since ${by} took the job over: ${comment}`;
  log.say(message, "stderr");
  const cause = { code: "taken_over", facts: { name: by } } as const;
  const failure = { code: "EXECUTION_FAILED", retryable: false, step: step.name, cause } as const;
  return endWithoutSuccess(run, "FAILED", context, log, { message, failure });
}

interface Failing {
  readonly visit: StepStatus | undefined;
  /** Absent: that of the visit. */
  readonly why?: string;
  readonly needsPerson?: boolean;
  /** Absent: that of the visit. */
  readonly cause?: Cause;
}

async function endFailed(
  run: RunThing,
  step: Step,
  { visit, why, needsPerson = visit?.needsPerson === true, cause: given }: Failing,
  context: RunContext,
  log: RunLog,
): Promise<PassOutcome> {
  const stopping = stopChildren(run, context, log, `step ${step.name} has failed`);
  if (stopping) return stopping;
  const message = `${step.name}: ${why ?? visit?.message ?? "failed"}`;
  if (why !== undefined) log.say(message, "stderr");
  const cause = given ?? visit?.cause ?? ({ code: "unknown" } as const);
  const failure = { code: "EXECUTION_FAILED", retryable: !needsPerson, step: step.name, cause } as const;
  return endWithoutSuccess(run, "FAILED", context, log, { message, failure });
}

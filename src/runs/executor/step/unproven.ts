import type { OpenStream } from "../../../capabilities/stream.ts";
import type { Cause } from "../../../kernel/causes.ts";
import { causeOf, messageOf, StepFailure } from "../../../kernel/errors.ts";
import { waitFor } from "../../../kernel/outcome.ts";
import { type Duration, minutes } from "../../../kernel/time/duration.ts";
import { type RunThing, stepJson } from "../../model/lifecycle.ts";
import type { Step } from "../../model/plan/plan.ts";
import { type AnyStep, type ProbeReport, readProbe } from "../../model/step.ts";
import { endRun } from "../end.ts";
import { endWithoutSuccess } from "../end-without-success.ts";
import { isNotOfTheStep, isShutOut, mayPass } from "../failure-causes.ts";
import { type Proven, startOf, stepsWith, withProof, writtenWith } from "../progress.ts";
import { type RunContext, stepContext } from "../run-context.ts";
import type { RunLog } from "../run-log.ts";
import { followStream, hasSurelyNotBegun, settlesIn } from "./action.ts";
import * as visits from "./visit.ts";
import { AT_ONCE, type PassOutcome, save, type Work, waitIn } from "./work.ts";

/** Actions that a run must not let go of: it follows them to their end, and where that cannot be read, it stays. */

/** A device that has told nothing for so long is not asked all the time. */
const RECHECK: Duration = minutes(10);
const LATE: Cause = { code: "not_done_in_time" };

/** The action was begun, its time is over, and the device tells neither that it is done nor that it is not. */
export const staysUnproven = (work: Work, kind: AnyStep, { state }: ProbeReport): boolean =>
  kind.staysUntilProven === true &&
  work.visit.actingAt !== null &&
  !hasSurelyNotBegun(work) &&
  state !== "not_done" &&
  visits.isOverdue(work.visit, work.step, work.context.clock);

/** The device shows nothing of an order that is on its way to it, or has just arrived: that is too soon to be believed. */
export function mayShowLater(work: Work, kind: AnyStep, { state }: ProbeReport): boolean {
  const { step, visit, context } = work;
  if (state !== "not_done" || kind.finishesOnceBegun !== true || !visits.isOpen(visit)) return false;
  return !visits.mayAct(visit, { isOurs: hasSurelyNotBegun(work), clock: context.clock }, settlesIn(step, kind));
}

/** From here on the run only asks, and its parent goes on without it. */
export function becomeUnproven({ run, step, visit, context, log }: Work, report: ProbeReport): PassOutcome {
  const message = visits.overdueMessage(step, report.message ?? "");
  const since = run.facts.unproven?.since ?? context.clock.now().toISOString();
  if (!run.facts.unproven)
    log.say(
      `step ${step.name}: ${message}; the run keeps its target until this is proven, or somebody cancels the run`,
      "stderr",
    );
  const cause = report.cause ?? LATE;
  return waitFor(`${step.name}: unproven: ${message}`, RECHECK, {
    cause,
    facts: {
      steps: stepsWith(run, { ...visit, message, cause }).map(stepJson),
      unproven: { step: step.name, since },
    },
    effects: log.effects(step.name),
  });
}

/** For a run that is being canceled: undefined where nothing of it must be followed, so that it may end. */
export async function followToItsEnd(
  run: RunThing,
  context: RunContext,
  log: RunLog,
): Promise<PassOutcome | undefined> {
  const work = begunWork(run, context, log);
  if (work === undefined) return undefined;
  const { step, visit, kind } = work;
  if (isReleased(run)) {
    // Whoever releases the device may have mended it: should it tell now that all is done, nothing has to be done again.
    const last = await probe(work, kind);
    return !(last instanceof Error) && last.state === "done" ? endProven(work, last) : undefined;
  }
  if (hasSurelyNotBegun(work)) return withdraw(work);
  const stream = context.call.streams?.underWay;
  if (stream !== undefined) return followItsStream(work, stream);
  const seen = await probe(work, kind);
  if (seen instanceof Error) return undefined; // it has failed: there is nothing more to follow
  if (seen.state === "done") {
    log.say(`step ${step.name} is done, and the run is being canceled`);
    const done = visits.succeeded(visit, context.clock.now(), seen.message ?? "", seen.verdict);
    return writeProof(work, { type: "proven", visit: done, report: seen, said: log.effects(step.name) });
  }
  if (mayShowLater(work, kind, seen)) return waitCanceled(work, seen);
  if (seen.state === "not_done" && visit.actedAt === null) return withdraw(work);
  if (staysUnproven(work, kind, seen)) return becomeUnproven(work, seen);
  if (seen.state === "halfway" && kind.carryOn) return carryOnCanceled(work, seen);
  if (visits.isOverdue(visit, step, context.clock)) return undefined;
  return waitCanceled(work, seen);
}

/** What was begun needs it to be followed at all, such as the runs that follow what others do. */
async function carryOnCanceled(work: BegunWork, seen: ProbeReport): Promise<PassOutcome> {
  const { run, step, visit, kind, context, log } = work;
  const base = stepContext(run, step, context, log, visit.round);
  const carried = await kind.carryOn?.({ ...base, evidence: visit.evidence ?? {}, receipt: visit.receipt });
  return waitIn({ ...work, visit: visits.withReceipt(visit, carried?.receipt) }, seen, carried?.effects);
}

/** For a run that is being canceled: its stream goes on, since half of what it sends would be worse than all of it. */
export const keepsItsStream = (run: RunThing, context: RunContext, log: RunLog): boolean =>
  begunWork(run, context, log) !== undefined && !isReleased(run);

/** As without a cancel, but for an end that is a plain no: then there is nothing to follow. */
async function followItsStream(work: BegunWork, stream: OpenStream): Promise<PassOutcome | undefined> {
  const { run, step, visit, kind, context, log } = work;
  const base = stepContext(run, step, context, log, visit.round);
  stream.withdraw(); // a device that is only asked whether it has time for it has begun nothing
  try {
    const came = await followStream(work, kind, { ...base, evidence: visit.evidence ?? {}, receipt: null }, stream);
    return came.type === "proven" ? writeProof(work, came) : came;
  } catch (error) {
    if (isNotOfTheStep(error, context)) throw error;
    log.say(`step ${step.name} failed: ${messageOf(error)}`, "stderr");
    return withdraw(work);
  }
}

const writeProof = ({ run, step }: Work, proven: Proven): PassOutcome =>
  writtenWith(withProof(startOf(run), proven), waitFor(`${step.name}: done`, AT_ONCE));

/** Nothing of it has happened: the next pass ends the run. */
const withdraw = (work: Work): PassOutcome =>
  save(work, visits.withdrawn(work.visit), { reason: `${work.step.name}: was not begun`, after: AT_ONCE });

const waitCanceled = (work: Work, seen: ProbeReport): PassOutcome =>
  waitIn(work, { ...seen, message: `the run is canceled when this has ended: ${seen.message ?? "under way"}` });

/** A cancel that came after it was known that nothing can be proven: the person takes it upon themselves. */
function isReleased({ cancelRequestedAt, facts: { unproven } }: RunThing): boolean {
  if (!unproven || cancelRequestedAt === null) return false;
  return cancelRequestedAt.getTime() > Date.parse(unproven.since);
}

/** Asks until the device tells. Whatever it tells ends the run: nobody waits for its further steps any more. */
export async function untilProven(run: RunThing, context: RunContext, log: RunLog): Promise<PassOutcome> {
  const work = begunWork(run, context, log);
  if (work === undefined)
    return endWithoutSuccess(run, "FAILED", context, log, { message: "nothing is open any more" });
  const { step, visit, kind } = work;
  const seen = await probe(work, kind);
  const now = context.clock.now();
  if (!(seen instanceof Error) && seen.state === "done") return endProven(work, seen);
  if (!(seen instanceof Error) && seen.state !== "not_done") return becomeUnproven(work, seen);
  const message = `${step.name}: ${seen instanceof Error ? seen.message : (seen.message ?? "nothing of it happened")}`;
  const cause = seen instanceof Error ? causeOf(seen) : (seen.cause ?? LATE);
  const failed = { ...visit, state: "FAILED", finishedAt: now, nextAttemptAt: null, message, cause } as const;
  const failure = { code: "EXECUTION_FAILED", retryable: true, step: step.name, cause } as const;
  return endWithoutSuccess(run, "FAILED", context, log, { message, failure, steps: stepsWith(run, failed) });
}

/** Nobody waits any more for what would come after it. */
async function endProven({ run, step, visit, context, log }: Work, seen: ProbeReport): Promise<PassOutcome> {
  const steps = stepsWith(run, visits.succeeded(visit, context.clock.now(), seen.message ?? "", seen.verdict));
  const isLast = run.plan.steps.at(-1)?.name === step.name;
  const message = `${step.name}: proven after its time`;
  if (isLast) return endRun(run, "SUCCEEDED", context, log, { message, steps });
  const failure = { code: "EXECUTION_FAILED", retryable: true, step: step.name, cause: LATE } as const;
  return endWithoutSuccess(run, "FAILED", context, log, {
    message: `${message}; what comes after it was not done`,
    failure,
    steps,
  });
}

interface BegunWork extends Work {
  readonly kind: AnyStep;
}

/** The action under way that must be followed; undefined: there is none. */
function begunWork(run: RunThing, context: RunContext, log: RunLog): BegunWork | undefined {
  const visit = run.facts.steps.findLast(({ state, actingAt }) => state === "RUNNING" && actingAt !== null);
  const step: Step | undefined = visit && run.plan.steps.find(({ name }) => name === visit.name);
  const kind = visit && context.steps.get(visit.kind);
  if (!visit || !step || kind?.finishesOnceBegun !== true) return undefined;
  return { run, step, visit, kind, context, log, isActing: false };
}

/** What the device tells; an error is its answer that the action has failed. A target that is gone tells nothing for good. */
async function probe({ run, step, visit, context, log }: Work, kind: AnyStep): Promise<ProbeReport | StepFailure> {
  try {
    const base = stepContext(run, step, context, log, visit.round);
    const { evidence, receipt, actingAt, streamedAt: lastSentAt } = visit;
    return readProbe(await kind.probe({ ...base, evidence: evidence ?? {}, receipt, actingAt, lastSentAt }));
  } catch (error) {
    if (isNotOfTheStep(error, context) || !(error instanceof StepFailure)) throw error;
    if (mayPass(error) || isShutOut(error))
      return { state: "unknown", message: messageOf(error), cause: causeOf(error) };
    return error;
  }
}

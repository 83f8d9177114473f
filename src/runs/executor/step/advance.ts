import type { Cause } from "../../../kernel/causes.ts";
import { causeOf, messageOf, StepFailure } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/lifecycle.ts";
import { happened, waitFor } from "../../../kernel/outcome.ts";
import { type RunThing, stepJson } from "../../model/lifecycle.ts";
import { leftOf } from "../../model/next-attempt.ts";
import { attemptsOf, type Step } from "../../model/plan/plan.ts";
import type { StepStatus } from "../../model/run.ts";
import { type AnyStep, type ProbeReport, readProbe } from "../../model/step.ts";
import { leaveToAnotherServer } from "../another-server.ts";
import { cleanUpBefore } from "../clean-up-before.ts";
import { isNotOfTheStep, isShutOut, mayPass, StillOpen } from "../failure-causes.ts";
import { isForRestartToCome } from "../next-boot.ts";
import { type Proven, stepsWith } from "../progress.ts";
import { checkCapable, type RunContext, stepContext } from "../run-context.ts";
import type { RunLog } from "../run-log.ts";
import { inTheWay, isStillToDo, undoStep } from "../undo.ts";
import { type Acting, act, followStream, hasSurelyNotBegun, settlesIn, streamOptionsOf, succeed } from "./action.ts";
import { endFailedAttempt, failAttempt } from "./failed-attempt.ts";
import { endStream, noRoomForStream } from "./stream.ts";
import { becomeUnproven, mayShowLater, staysUnproven } from "./unproven.ts";
import * as visits from "./visit.ts";
import { AT_ONCE, type PassOutcome, save, type Work, waitIn } from "./work.ts";

/** Nothing more is known than that the time is over. */
const LATE: Cause = { code: "not_done_in_time" };
/** Of an answer that an older server waited for. */
const UNKNOWN: Cause = { code: "unknown" };

/** Looks at one step: asks how far it is, and does the next thing about it. */
export async function workOn(
  run: RunThing,
  step: Step,
  visit: StepStatus,
  context: RunContext,
  log: RunLog,
): Promise<PassOutcome | Proven> {
  const work: Work = { run, step, visit, context, log, isActing: false };
  if (visit.failing) return endFailedAttempt(work, visit.failing);
  const pause = visits.pauseLeft(visit, context.clock);
  if (pause > 0)
    return waitFor(
      `${step.name}: trying again after ${visit.message}`,
      pause,
      visit.cause ? { cause: visit.cause } : {},
    );
  try {
    return await attempt(work);
  } catch (error) {
    if (isNotOfTheStep(error, context)) throw error;
    await endStream(context, messageOf(error)); // what failed may be the look after it
    return failAttempt(work, error);
  }
}

async function attempt(work: Work): Promise<PassOutcome | Proven> {
  const { run, step, visit, context, log } = work;
  const kind = context.steps.get(step.kind);
  // Nothing is written: how long it waits, and whether it has failed, is for those to say who know it. People can cancel the run.
  if (!kind) return leaveToAnotherServer(`${step.name}: this server does not know the step kind ${step.kind}`);
  checkCapable(kind, step, context.provider);
  const base = stepContext(run, step, context, log, visit.round);
  if (visit.evidence !== null) return goOn(work, kind, { ...base, evidence: visit.evidence, receipt: visit.receipt });
  if (visit.toTakeBack !== null && kind.undo) return clearTheWay(work, visit.toTakeBack);
  log.say(`step ${step.name} begins${visit.retryCount > 0 ? `, attempt ${visit.retryCount + 1}` : ""}`);
  // Asking changes nothing, so that the evidence need not be on record for it: it is written with what the answer leads to.
  const evidence = await kind.before(base);
  return goOn({ ...work, visit: visits.withIntent(visit, evidence) }, kind, { ...base, evidence, receipt: null });
}

/**
 * Before anything is begun anew: what the attempt before began, and could not undo when it failed. A script that runs on while
 * its machine cannot be reached would else run beside the next one, and be forgotten over it.
 */
async function clearTheWay(work: Work, evidence: JsonObject): Promise<PassOutcome> {
  const { run, step, visit, context, log } = work;
  const left = leftOf(visit, evidence, visit.receiptToTakeBack);
  const remains = await undoStep({ run, ...left }, context, log);
  const cleared = { ...visits.settled(visit), message: "", cause: null };
  const reason = `${step.name}: about to start again`;
  if (remains === null) return save(work, cleared, { reason, after: AT_ONCE });
  if (!isStillToDo(remains)) {
    log.staysBehind(remains.left);
    return save(work, cleared, { reason, after: AT_ONCE, residue: [remains.left] });
  }
  const why = `what the previous attempt began is not undone: ${inTheWay(remains)}`;
  // Only a person can change that, and waiting for one is what the run's end is for.
  if (remains.is === "shut_out") throw StepFailure.of(remains.cause, why, "fail");
  if (visits.isOverdue(visit, step, context.clock)) throw StepFailure.of(remains.cause, why, "retry");
  return waitIn(work, { message: why, cause: remains.cause });
}

/** Asks first; acts only when that was announced by the pass before. */
async function goOn(work: Work, kind: AnyStep, acting: Acting): Promise<PassOutcome | Proven> {
  const { run, step, visit, context, log } = work;
  if (run.action === "adopt" && run.plan.workflow === undefined) return adopt(work, kind, acting);
  const stream = context.call.streams?.underWay;
  if (stream !== undefined) return followStream(work, kind, acting, stream);
  const isOurs = hasSurelyNotBegun(work);
  const { actingAt, streamedAt: lastSentAt } = visit;
  const report = await askPatiently(work, kind, { ...acting, hasNotBegun: isOurs, actingAt, lastSentAt });
  if (report === "tells nothing") {
    return save(work, visits.withoutEvidence(visit), { reason: `${step.name}: about to start again`, after: AT_ONCE });
  }
  if (report.state === "done") return succeed(work, report);
  const found = await findDone(work, kind, acting);
  if (found) return succeed(work, found);
  if (staysUnproven(work, kind, report)) return becomeUnproven(work, report);
  if (mayShowLater(work, kind, report)) return waitIn(work, report);
  checkTime(work, report, visits.isOpen(visit) && !isOurs);
  if (report.state === "halfway" && visit.actingAt !== null) return carryOn(work, kind, acting, report);
  const isToDo = report.state === "not_done" || report.state === "halfway";
  if (!isToDo || !visits.mayAct(visit, { isOurs, clock: context.clock }, settlesIn(step, kind))) {
    return waitIn(work, report);
  }
  if (isOurs) return act(work, kind, acting);
  const lost = run.facts.steps.filter((one) => one.takenBack && isForRestartToCome(one, run.facts.steps, context));
  if (lost.length > 0) return setAgainFirst(work, lost);
  if (visit.unanswered !== null) return judgeUnanswered(work, visit.unanswered, report);
  if (run.facts.takeBackFirst !== null) return cleanUpBefore(run, run.facts.takeBackFirst, context, log);
  // Whoever is being stopped announces nothing more: another replica would have to wait whether it happened.
  if (context.call.mayBegin?.() === false) {
    return save(work, visit, { reason: `${step.name}: about to act`, after: AT_ONCE });
  }
  if (streamOptionsOf(kind, step) && context.call.streams?.isFull) return save(work, visit, noRoomForStream(step));
  if (kind.actsByEffectsOnly) return act({ ...work, visit: visits.announced(visit, context) }, kind, acting);
  const before = (await kind.announces?.(acting)) ?? [];
  const steps = stepsWith(run, visits.announced(visit, context)).map(stepJson);
  const effects = [...log.effects(step.name), ...before];
  return happened("acting", { message: `${step.name}: acting`, facts: { steps }, effects });
}

/**
 * What was set for a restart to come is not in force any more, since the run before took it back when it ended: it is set again
 * before anything is done. Where people have restarted the machine meanwhile it stays undone.
 */
function setAgainFirst({ run, step, visit, log }: Work, lost: readonly StepStatus[]): PassOutcome {
  const steps = run.facts.steps.map((one) => {
    if (lost.includes(one)) return visits.toDoAgain(one);
    return visits.isSameVisit(one, visit) ? visits.toDoAgain(visit) : one;
  });
  const names = lost.map(({ name }) => name).join(", ");
  log.say(`step ${step.name}: ${names} was undone meanwhile, and is done again first`);
  return waitFor(`${step.name}: ${names} first`, AT_ONCE, {
    facts: { steps: steps.map(stepJson) },
    effects: log.effects(step.name),
  });
}

/** No answer to it is no failed attempt: the next pass finds where things are, and doing it again is harmless. */
async function carryOn(work: Work, kind: AnyStep, acting: Acting, report: ProbeReport): Promise<PassOutcome> {
  try {
    const carried = await kind.carryOn?.(acting);
    return waitIn({ ...work, visit: visits.withReceipt(work.visit, carried?.receipt) }, report, carried?.effects);
  } catch (error) {
    if (isNotOfTheStep(error, work.context) || !mayPass(error)) throw error;
    return waitIn(work, { message: messageOf(error), cause: causeOf(error) });
  }
}

/** The device has had its time, and shows nothing of the action: another attempt is due. Where this is the last, its time is used. */
function judgeUnanswered(work: Work, why: string, report: ProbeReport): PassOutcome {
  const { step, visit } = work;
  const { message = "" } = report;
  if (visit.retryCount + 1 >= attemptsOf(step)) return waitIn(work, report);
  throw new StillOpen(
    visit.unansweredCause ?? UNKNOWN,
    `${why}; nothing of it has happened since${message === "" ? "" : `: ${message}`}`,
  );
}

function checkTime({ step, visit, context }: Work, report: ProbeReport, isOpen: boolean): void {
  if (!visits.isOverdue(visit, step, context.clock)) return;
  const { state, message = "", cause = LATE, callsPerson } = report;
  const late = visits.overdueMessage(step, message);
  if (callsPerson) throw StepFailure.of(cause, late, "intervene");
  // Begun anew, it would have nothing to go by in the middle of it: the next attempt carries on.
  if (state === "halfway" && visit.actingAt !== null) throw new StillOpen(cause, late);
  // What is under way was heard of, whoever did not say so.
  if (!isOpen || state === "in_progress" || state === "halfway") throw StepFailure.of(cause, late, "retry");
  if (visit.unanswered === null) throw new StillOpen(cause, late);
  // Why the command got no answer tells more than what the device shows since: nobody can say that it was accepted.
  throw new StillOpen(visit.unansweredCause ?? UNKNOWN, `${visit.unanswered}; then ${late}`);
}

/** As long as it is open whether the device obeyed, one that cannot be asked is no failure of the attempt. */
async function askPatiently(work: Work, kind: AnyStep, acting: Acting): Promise<ProbeReport | "tells nothing"> {
  try {
    return await ask(work, kind, acting);
  } catch (error) {
    if (!visits.isOpen(work.visit) || !mayPass(error) || isNotOfTheStep(error, work.context)) throw error;
    return { state: "unknown", message: messageOf(error), cause: causeOf(error) };
  }
}

/** By the evidence of an earlier run a step can be proven, but not fail: that it failed then is why people asked to go on. */
async function ask(
  { run, step, visit, log }: Work,
  kind: AnyStep,
  acting: Acting,
): Promise<ProbeReport | "tells nothing"> {
  try {
    return readProbe(await kind.probe(acting));
  } catch (error) {
    if (!visit.resumed || !isOldNews(error)) throw error;
    // That we are not let in tells nothing of what was begun. An adoption looks in other ways as well.
    if (isShutOut(error) && run.action !== "adopt") throw error;
    log.say(`step ${step.name} is not done, by what was noted before: ${messageOf(error)}`);
    return "tells nothing";
  }
}

/** An answer, and none that calls for a person. */
const isOldNews = (error: unknown): boolean =>
  error instanceof StepFailure && error.disposition !== "intervene" && !mayPass(error);

/** Looks and never acts: the step is proven as things are, or the run ends with what was seen instead. */
async function adopt(work: Work, kind: AnyStep, acting: Acting): Promise<PassOutcome | Proven> {
  const { step, visit, context } = work;
  const asked = await ask(work, kind, acting);
  const probed: ProbeReport =
    asked === "tells nothing" ? { state: "not_done", message: "what was begun then has failed" } : asked;
  const seen = probed.state === "done" || !kind.observe ? probed : readProbe(await kind.observe(acting));
  if (seen.state === "done") return succeed(work, seen);
  const message = seen.message ?? probed.message ?? "";
  const why = `cannot be taken as done${message === "" ? "" : `: ${message}`}`;
  const cause = seen.cause ?? probed.cause;
  if (probed.state === "not_done") throw StepFailure.of(cause ?? { code: "not_done" }, why, "fail");
  if (visits.isOverdue(visit, step, context.clock))
    throw StepFailure.of(cause ?? LATE, `${why}; ${visits.overdueMessage(step, "")}`, "fail");
  return waitIn(work, probed);
}

/**
 * Whoever begins a workflow anew, or adopts what people did, does not do again what is done already: the stage is looked for as it
 * is, before anything is begun.
 */
async function findDone(
  { run, visit, context }: Work,
  kind: AnyStep,
  acting: Acting,
): Promise<ProbeReport | undefined> {
  const isAsked = run.plan.workflow !== undefined && (run.action === "adopt" || run.action === "rerun");
  if (!isAsked || !kind.observe || visit.actingBy !== null || visit.unanswered !== null) return undefined;
  try {
    const seen = readProbe(await kind.observe(acting));
    return seen.state === "done" ? seen : undefined;
  } catch (error) {
    if (!(error instanceof StepFailure) || mayPass(error) || isNotOfTheStep(error, context)) throw error;
    return undefined; // an answer, and not that it is done
  }
}

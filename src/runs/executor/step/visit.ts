import type { Cause } from "../../../kernel/causes.ts";
import type { JsonObject } from "../../../kernel/lifecycle.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import { type Duration, describeDuration, milliseconds } from "../../../kernel/time/duration.ts";
import { pauseBefore } from "../../../kernel/time/retry.ts";
import { attemptsOf, type Step, timeoutOf } from "../../model/plan/plan.ts";
import type { FailedAttempt, StepStatus } from "../../model/run.ts";
import { type Acted, STEP_RETRY } from "../../model/step.ts";

/** The pure changes of a visit to a step: what the executor writes between its calls to devices. */

/** A step that is to be visited. */
const notBegun = ({ name, kind }: Pick<Step, "name" | "kind">, round: number): StepStatus => ({
  name,
  round,
  kind,
  state: "WAITING",
  retryCount: 0,
  startedAt: null,
  finishedAt: null,
  message: "",
  cause: null,
  verdict: "",
  carriedOver: false,
  nextAttemptAt: null,
  attemptStartedAt: null,
  actingBy: null,
  actingAt: null,
  streamedAt: null,
  actedAt: null,
  unanswered: null,
  unansweredCause: null,
  evidence: null,
  receipt: null,
  toTakeBack: null,
  receiptToTakeBack: null,
  takenBack: false,
  resumed: false,
  needsPerson: false,
  failing: null,
});

/** As if it had never been visited, but for what is still to be undone. */
export const toDoAgain = (visit: StepStatus): StepStatus => ({
  ...notBegun(visit, visit.round),
  toTakeBack: visit.toTakeBack,
  receiptToTakeBack: visit.receiptToTakeBack,
});

/** Proven, and undone as the run ended. Where the device did not answer to that, the attempt after undoes it first. */
export const takenBack = (visit: StepStatus, { isSettled }: { readonly isSettled: boolean }): StepStatus =>
  isSettled
    ? { ...settled(visit), takenBack: true }
    : { ...visit, takenBack: true, toTakeBack: visit.evidence, receiptToTakeBack: visit.receipt };

/** Nothing of it is left to undo. */
export const settled = (visit: StepStatus): StepStatus => ({ ...visit, toTakeBack: null, receiptToTakeBack: null });

export const beginVisit = (step: Step, now: Date, round = 1): StepStatus => begin(notBegun(step, round), now);

/** It is not needed, and so is over before it began. */
export const skipped = (step: Step, round: number, why: string, now: Date): StepStatus => ({
  ...notBegun(step, round),
  state: "SKIPPED",
  message: why,
  finishedAt: now,
});

export const isSameVisit = (one: StepStatus, other: StepStatus): boolean =>
  one.name === other.name && one.round === other.round;

/** One that waits begins when it is first looked at. */
export const begin = (visit: StepStatus, now: Date): StepStatus => ({
  ...visit,
  state: "RUNNING",
  startedAt: now,
  attemptStartedAt: now,
});

/** What an earlier run noted does not tell any more: the step is done as if it came to it for the first time. */
export const withoutEvidence = (visit: StepStatus): StepStatus => ({
  ...visit,
  evidence: null,
  receipt: null,
  actingBy: null,
  actingAt: null,
  streamedAt: null,
  actedAt: null,
  unanswered: null,
  unansweredCause: null,
  resumed: false,
});

export const withIntent = (visit: StepStatus, evidence: JsonObject): StepStatus => ({ ...visit, evidence });

/** Who is about to act: persisted before the action, so that a crash in the middle of it is known as one. */
export const announced = (visit: StepStatus, { instance, clock }: { instance: string; clock: Clock }): StepStatus => ({
  ...visit,
  nextAttemptAt: null,
  actingBy: instance,
  actingAt: clock.now(),
  streamedAt: null,
  unanswered: null,
  unansweredCause: null,
  receipt: null,
  toTakeBack: visit.evidence,
  receiptToTakeBack: null,
  resumed: false,
});

/** What was announced did not happen, and will not: there is nothing to undo. */
export const withdrawn = (visit: StepStatus): StepStatus => settled(withoutEvidence(visit));

export const acted = (visit: StepStatus, now: Date, { receipt }: Acted = {}): StepStatus =>
  withReceipt({ ...visit, actedAt: now }, receipt);

/** The stream that the action is goes on. */
export const streaming = (visit: StepStatus, now: Date, message: string): StepStatus => ({
  ...visit,
  streamedAt: now,
  message,
});

/** A later receipt takes the place of an earlier one; none leaves it as it is. */
export const withReceipt = (visit: StepStatus, receipt: JsonObject | undefined): StepStatus =>
  receipt === undefined ? visit : { ...visit, receipt, receiptToTakeBack: receipt };

/**
 * The command is on its way, and what the device made of it was not said, or makes no sense: only asking it tells. Who announced it
 * has begun it, and need not be remembered: nobody is to take it for one that has not.
 */
export const unanswered = (visit: StepStatus, why: string, cause: Cause): StepStatus => ({
  ...visit,
  actingBy: null,
  message: why,
  cause,
  unanswered: why,
  unansweredCause: cause,
});

/** Somebody announced the action, and nobody has said that it was done: whether the device heard of it is open. */
export const isOpen = ({ actingAt, actedAt }: StepStatus): boolean => actingAt !== null && actedAt === null;

/**
 * Whether "nothing of it happened" may be believed. Once we acted, the device only takes its time; and when somebody announced
 * the action and never said that it was done, they may have died, or lost the answer, just after acting.
 */
export function mayAct(
  { actingAt, streamedAt, actedAt }: StepStatus,
  { isOurs, clock }: { readonly isOurs: boolean; readonly clock: Clock },
  settles: Duration,
): boolean {
  if (actedAt !== null) return false;
  if (actingAt === null || isOurs) return true;
  return clock.now().getTime() - (streamedAt ?? actingAt).getTime() > settles;
}

/** The attempt has failed. What it began is undone by the pass after this is on record. */
export const failing = (
  visit: StepStatus,
  { message, cause, ...failure }: FailedAttempt & Pick<StepStatus, "message" | "cause">,
): StepStatus => ({ ...visit, message, cause, failing: failure });

/** It is not going on any more; a run that has ended has no step under way. */
export const canceled = (visit: StepStatus, now: Date): StepStatus => ({
  ...visit,
  failing: null,
  state: "FAILED",
  finishedAt: now,
  nextAttemptAt: null,
  message: visit.message === "" ? "canceled" : `canceled: ${visit.message}`,
});

/** Of the action only that there was one is of any more use; the rest would be written again with every further step. */
export const succeeded = (visit: StepStatus, now: Date, message: string, verdict = ""): StepStatus => ({
  ...visit,
  state: "SUCCEEDED",
  finishedAt: now,
  message,
  verdict,
  cause: null,
  nextAttemptAt: null,
  attemptStartedAt: null,
  actingBy: null,
  streamedAt: null,
  actedAt: null,
  unanswered: null,
  unansweredCause: null,
  toTakeBack: null,
  receiptToTakeBack: null,
});

/**
 * The next attempt after a pause, or the end when there is none left. A new attempt takes its evidence anew, unless it is open
 * whether the device heard the command: then the old evidence is what tells.
 */
export function failedAttempt(
  visit: StepStatus,
  step: Step,
  failure: Pick<FailedAttempt, "final" | "mayHaveActed" | "needsPerson"> & Pick<StepStatus, "message" | "cause">,
  now: Date,
): StepStatus {
  const retryCount = visit.retryCount + 1;
  const { message, cause } = failure;
  const counted = { ...visit, retryCount, message, cause, failing: null };
  if (failure.final || retryCount >= attemptsOf(step)) {
    return { ...counted, state: "FAILED", finishedAt: now, nextAttemptAt: null, needsPerson: failure.needsPerson };
  }
  const nextAttemptAt = new Date(now.getTime() + pauseBefore(retryCount, STEP_RETRY));
  const anew = failure.mayHaveActed
    ? { ...counted, unanswered: null, unansweredCause: null }
    : withoutEvidence(counted);
  return { ...anew, nextAttemptAt, attemptStartedAt: nextAttemptAt };
}

export function isOverdue({ attemptStartedAt }: StepStatus, step: Step, clock: Clock): boolean {
  return attemptStartedAt !== null && clock.now().getTime() - attemptStartedAt.getTime() > timeoutOf(step);
}

export const overdueMessage = (step: Step, lastSeen: string): string =>
  `not done within ${describeDuration(timeoutOf(step))}${lastSeen === "" ? "" : `: ${lastSeen}`}`;

/** How long until the attempt's time is over. */
export const timeLeft = ({ attemptStartedAt }: StepStatus, step: Step, clock: Clock): Duration =>
  attemptStartedAt === null
    ? timeoutOf(step)
    : milliseconds(Math.max(0, attemptStartedAt.getTime() + timeoutOf(step) - clock.now().getTime()));

/** How long until the pause between two attempts is over. */
export const pauseLeft = ({ nextAttemptAt }: StepStatus, clock: Clock): Duration =>
  milliseconds(nextAttemptAt === null ? 0 : Math.max(0, nextAttemptAt.getTime() - clock.now().getTime()));

import { isUnreachable } from "../../../capabilities/device-failure.ts";
import type { Cause } from "../../../kernel/causes.ts";
import { AppError, causeOf, messageOf, StepFailure } from "../../../kernel/errors.ts";
import { leftOf } from "../../model/next-attempt.ts";
import { attemptsOf } from "../../model/plan/plan.ts";
import type { FailedAttempt, StepStatus } from "../../model/run.ts";
import { notUndone } from "../abandon.ts";
import { activeChildren } from "../children.ts";
import { endWithoutSuccess } from "../end-without-success.ts";
import { StillOpen } from "../failure-causes.ts";
import { stepsWith } from "../progress.ts";
import { isSettled, type UndoResult, undoFinally, undoStep } from "../undo.ts";
import * as visits from "./visit.ts";
import { AT_ONCE, type PassOutcome, save, type Work } from "./work.ts";

/** Says why the attempt has failed. Where it began something, that is on record first, and the next pass undoes it. */
export async function failAttempt(work: Work, error: unknown): Promise<PassOutcome> {
  const { run, step, visit, context, log } = work;
  const [message, cause] = [messageOf(error), causeOf(error)];
  log.say(`step ${step.name} failed: ${message}`, "stderr");
  context.stepFailed?.({
    run: run.id,
    step: step.name,
    stepKind: step.kind,
    attempt: visit.retryCount + 1,
    cause: cause.code,
    reason: message,
  });
  const failure = meaningOf(work, error);
  const failing = visits.failing(visit, { message, cause, ...failure });
  if (!hasToUndo(work, failure)) return endFailedAttempt({ ...work, visit: failing }, failure);
  return save(work, failing, { reason: `${step.name}: ${message}`, after: AT_ONCE });
}

function meaningOf(work: Work, error: unknown): FailedAttempt {
  // What the server itself says of its own (a kubeconfig that cannot be read) is for a person, and no bug.
  const isForPerson = error instanceof AppError || (error instanceof StepFailure && error.disposition === "intervene");
  const isBug = !(error instanceof StepFailure || error instanceof AppError);
  return {
    final: !(error instanceof StepFailure) || error.disposition !== "retry",
    mayHaveActed: leavesOpen(work, error),
    needsPerson: isBug || isForPerson,
    isRefusal: work.isActing && !isBug,
    isBug,
  };
}

/** Whether a device is called before the attempt is over. */
const hasToUndo = (work: Work, failure: FailedAttempt): boolean => {
  const { final, mayHaveActed } = failure;
  const isLast = final || work.visit.retryCount + 1 >= attemptsOf(work.step);
  return (isLast || !mayHaveActed) && work.visit.toTakeBack !== null && canUndo(work);
};

/** Counts the attempt, undoes what it began, and has the next one come after a pause; after the last one the step has failed. */
export async function endFailedAttempt(work: Work, failure: FailedAttempt): Promise<PassOutcome> {
  const { run, step, visit, context, log } = work;
  const { message, cause } = visit;
  const failed = visits.failedAttempt(visit, step, { message, cause, ...failure }, context.clock.now());
  const end = isOver(failed, failure) ? await takeBackAttempt(work, failed, failure) : NOT_OVER;
  const after = end.isSettled ? visits.settled(failed) : failed;
  const residue = failed.state === "FAILED" && end.left !== null ? [end.left] : [];
  // The runs that it started end first: the next pass finds the step FAILED, and sees to that.
  if (failure.isBug && activeChildren(run).length === 0) {
    const panic = { code: "PANIC", retryable: false, step: step.name, cause: cause ?? UNKNOWN } as const;
    const steps = stepsWith(run, after);
    return endWithoutSuccess(run, "FAILED", context, log, {
      message: `${step.name}: ${message}`,
      failure: panic,
      steps,
      residue,
    });
  }
  return save(work, after, {
    reason: `${step.name}: ${message}`,
    after: visits.pauseLeft(after, context.clock),
    residue,
  });
}

/** Otherwise the next attempt goes by the evidence of this one, and what this one began is not to be undone under it. */
const isOver = (failed: StepStatus, { mayHaveActed }: FailedAttempt): boolean =>
  failed.state === "FAILED" || !mayHaveActed;

const canUndo = ({ step, context }: Work): boolean => context.steps.get(step.kind)?.undo !== undefined;

/** Who did not answer may have heard. Every other failure is an answer. */
const leavesOpen = ({ visit }: Work, error: unknown): boolean =>
  error instanceof StillOpen || ((visit.resumed || visits.isOpen(visit)) && isUnreachable(error));

/** Of a visit whose cause only a newer version knows. */
const UNKNOWN: Cause = { code: "unknown" };

const NOT_OVER: UndoResult = { left: null, isSettled: false };
const NOTHING_BEGUN: UndoResult = { left: null, isSettled: true };

/** Before another attempt, and at the end: two scripts must not run side by side, nor a medium stay in its drive. */
async function takeBackAttempt(work: Work, { state }: StepStatus, { isRefusal }: FailedAttempt): Promise<UndoResult> {
  const { run, visit, context, log } = work;
  if (visit.toTakeBack === null) return NOTHING_BEGUN;
  // A run that looks only since its backup was restored has begun this itself, and may not undo it.
  if (run.action === "adopt" && run.plan.workflow === undefined) {
    const [left = null] = notUndone([visit], run, context);
    if (left !== null) log.staysBehind(left);
    return { left, isSettled: false };
  }
  // The device said no: where nothing can be undone, there is then nothing to list either.
  if (isRefusal && !canUndo(work)) return NOTHING_BEGUN;
  const begun = { run, ...leftOf(visit, visit.toTakeBack, visit.receiptToTakeBack) };
  const end = state === "FAILED" && !isRefusal ? await undoFinally(begun, context, log) : await takeBackForNow();
  if (end.left !== null) log.staysBehind(end.left);
  return end;

  /** Another attempt may make good what this one has done in part; and what was refused was not done. */
  async function takeBackForNow(): Promise<UndoResult> {
    const remains = await undoStep(begun, context, log);
    return { left: remains?.left ?? null, isSettled: isSettled(remains) };
  }
}

import { isUnreachable } from "../../../capabilities/device-failure.ts";
import { AppError, causeOf, messageOf, StepFailure } from "../../../kernel/errors.ts";
import { leftOf } from "../../model/next-attempt.ts";
import { activeChildren } from "../children.ts";
import { endWithoutSuccess } from "../end-without-success.ts";
import { StillOpen } from "../failure-causes.ts";
import { stepsWith } from "../progress.ts";
import { isSettled, type UndoResult, undoFinally, undoStep } from "../undo.ts";
import * as visits from "./visit.ts";
import { type PassOutcome, save, type Work } from "./work.ts";

/** Counts the attempt, undoes what it began, and has the next one come after a pause; after the last one the step has failed. */
export async function failAttempt(work: Work, error: unknown): Promise<PassOutcome> {
  const { run, step, visit, context, log } = work;
  const message = messageOf(error);
  const cause = causeOf(error);
  // What the server itself says of its own (a kubeconfig that cannot be read) is for a person, and no bug.
  const isForPerson = error instanceof AppError || (error instanceof StepFailure && error.disposition === "intervene");
  const isBug = !(error instanceof StepFailure || error instanceof AppError);
  const mayHaveActed = leavesOpen(work, error);
  const failed = visits.failedAttempt(
    visit,
    step,
    {
      message,
      cause,
      final: !(error instanceof StepFailure) || error.disposition !== "retry",
      mayHaveActed,
      needsPerson: isBug || isForPerson,
    },
    context.clock.now(),
  );
  log.say(`step ${step.name} failed: ${message}`, "stderr");
  context.stepFailed?.({
    run: run.id,
    step: step.name,
    stepKind: step.kind,
    attempt: failed.retryCount,
    cause: cause.code,
    reason: message,
  });
  const isFinal = failed.state === "FAILED";
  // Otherwise the next attempt goes by the evidence of this one, and what this one began is not to be undone under it.
  const isOver = isFinal || !mayHaveActed;
  const end = isOver ? await takeBackAttempt(work, { isFinal, isRefusal: work.isActing && !isBug }) : NOT_OVER;
  const after = end.isSettled ? visits.settled(failed) : failed;
  const residue = isFinal && end.left !== null ? [end.left] : [];
  // The runs that it started end first: the next pass finds the step FAILED, and sees to that.
  if (isBug && activeChildren(run).length === 0) {
    const failure = { code: "PANIC", retryable: false, step: step.name, cause } as const;
    const steps = stepsWith(run, after);
    return endWithoutSuccess(run, "FAILED", context, log, {
      message: `${step.name}: ${message}`,
      failure,
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

/** Who did not answer may have heard. Every other failure is an answer. */
const leavesOpen = ({ visit }: Work, error: unknown): boolean =>
  error instanceof StillOpen || ((visit.resumed || visits.isOpen(visit)) && isUnreachable(error));

const NOT_OVER: UndoResult = { left: null, isSettled: false };
const NOTHING_BEGUN: UndoResult = { left: null, isSettled: true };

/** Before another attempt, and at the end: two scripts must not run side by side, nor a medium stay in its drive. */
async function takeBackAttempt(
  { run, step, visit, context, log }: Work,
  { isFinal, isRefusal }: { readonly isFinal: boolean; readonly isRefusal: boolean },
): Promise<UndoResult> {
  if (visit.toTakeBack === null) return NOTHING_BEGUN;
  const canUndo = context.steps.get(step.kind)?.undo !== undefined;
  // The device said no: where nothing can be undone, there is then nothing to list either.
  if (isRefusal && !canUndo) return NOTHING_BEGUN;
  const begun = { run, ...leftOf(visit, visit.toTakeBack, visit.receiptToTakeBack) };
  const end = isFinal && !isRefusal ? await undoFinally(begun, context, log) : await takeBackForNow();
  if (end.left !== null) log.staysBehind(end.left);
  return end;

  /** Another attempt may make good what this one has done in part; and what was refused was not done. */
  async function takeBackForNow(): Promise<UndoResult> {
    const remains = await undoStep(begun, context, log);
    return { left: remains?.left ?? null, isSettled: isSettled(remains) };
  }
}

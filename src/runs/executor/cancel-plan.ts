import type { RunThing } from "../model/lifecycle.ts";
import { eachLeft, leftOf } from "../model/next-attempt.ts";
import type { StepStatus } from "../model/run.ts";
import { endCanceled } from "./end-canceled.ts";
import type { RunContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";
import type { PassOutcome } from "./step/work.ts";
import { type UndoResult, undoAll, undoFinally } from "./undo.ts";

/** What could be undone is; what could not is listed, and kept for the attempt after. It always ends. */
export async function cancelRun(run: RunThing, context: RunContext, log: RunLog): Promise<PassOutcome> {
  const { takeBackFirst, steps } = run.facts;
  const isOnlyLooking = run.action === "adopt";
  const earlier = takeBackFirst && !isOnlyLooking ? await undoAll(run, eachLeft(takeBackFirst), context, log) : [];
  // One that has FAILED was undone when it did. There are two while something is set again for the one after it.
  const toUndo = steps.filter(({ state, toTakeBack }) => state !== "FAILED" && toTakeBack !== null).toReversed();
  const begun = new Map<StepStatus, UndoResult>();
  for (const visit of toUndo) begun.set(visit, await undoFinally({ run, ...begunBy(visit) }, context, log));
  return endCanceled(run, { begun, ...(!isOnlyLooking && { earlier }) }, context, log);
}

const begunBy = ({ toTakeBack, receiptToTakeBack, ...visit }: StepStatus) =>
  leftOf(visit, toTakeBack ?? {}, receiptToTakeBack);

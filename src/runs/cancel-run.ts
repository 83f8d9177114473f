import { endUnwell } from "./end-unwell.ts";
import type { RunThing } from "./lifecycle.ts";
import { stepsWith } from "./progress.ts";
import { eachLeft, leftOverOf } from "./run-action.ts";
import type { RunContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";
import * as visits from "./step-visit.ts";
import type { Looked } from "./step-work.ts";
import { isSettled, takeBackAll, takeBackForGood } from "./take-back.ts";

/** What could be taken back is; what could not is listed, and kept for the attempt after. It always ends. */
export async function cancelRun(run: RunThing, context: RunContext, log: RunLog): Promise<Looked> {
  const { takeBackFirst, steps } = run.facts;
  const isOnlyLooking = run.action === "adopt";
  const earlier =
    takeBackFirst === null || isOnlyLooking ? [] : await takeBackAll(run, eachLeft(takeBackFirst), context, log);
  // One that has FAILED was taken back when it did.
  const visit = steps.findLast(({ state, toTakeBack }) => state !== "FAILED" && toTakeBack !== null);
  const begun = visit?.toTakeBack ? { run, step: visit.name, evidence: visit.toTakeBack } : null;
  const end = begun === null ? null : await takeBackForGood(begun, context, log);
  log.say("the run was canceled");
  const last = steps.at(-1);
  const isOpen = last?.state === "RUNNING" || last?.state === "WAITING";
  const kept = last === visit && end?.isSettled ? { toTakeBack: null } : {};
  return endUnwell(run, "CANCELED", context, log, {
    residue: [...earlier.map(({ remains }) => remains?.text ?? null), end?.left ?? null].filter((one) => one !== null),
    takeBackFirst: isOnlyLooking
      ? takeBackFirst
      : leftOverOf(earlier.filter(({ remains }) => !isSettled(remains)).map(({ left }) => left)),
    ...(last &&
      isOpen && {
        steps: stepsWith(run, { ...visits.canceled(last, context.clock.now()), ...kept }),
      }),
  });
}

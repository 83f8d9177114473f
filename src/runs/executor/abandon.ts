import type { Residue } from "../../kernel/residue.ts";
import type { RunThing } from "../model/lifecycle.ts";
import type { VisitKey } from "../model/next-attempt.ts";
import type { StepStatus } from "../model/run.ts";
import { stopChildren } from "./children.ts";
import { endRun } from "./end.ts";
import { isUnderWay } from "./end-canceled.ts";
import type { RunContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";
import * as visits from "./step/visit.ts";
import type { PassOutcome } from "./step/work.ts";
import { whatIsLeftBy } from "./undo.ts";

const WHY = "the database was restored from a backup, and nobody knows what was done since";

/**
 * Ends a run without a word to any device: what its steps had begun, as far as the backup knows, stays as it is and is listed. An attempt
 * after it undoes that first, as after any other end.
 */
export function abandonRun(run: RunThing, context: RunContext, log: RunLog): PassOutcome {
  const stopping = stopChildren(run, context, log, "the run was abandoned");
  if (stopping) return stopping;
  const { steps, takeBackFirst, compensateFirst } = run.facts;
  const residue = notUndone(
    steps.filter(({ state, toTakeBack }) => state !== "FAILED" && toTakeBack !== null),
    run,
    context,
  );
  for (const one of residue) log.staysBehind(one);
  log.say("the run was abandoned: nothing was undone, and no device was asked");
  const now = context.clock.now();
  return endRun(run, "CANCELED", context, log, {
    message: WHY,
    residue,
    takeBackFirst,
    compensateFirst,
    ...(steps.some(isUnderWay) && {
      steps: steps.map((visit) => (isUnderWay(visit) ? visits.canceled(visit, now) : visit)),
    }),
  });
}

/** What these visits may have left, where nobody may touch the device to undo it. */
export const notUndone = (begun: readonly StepStatus[], run: RunThing, context: RunContext): Residue[] =>
  whatIsLeftBy(begun.map(keyOf), run, context).map((left) => ({
    ...left,
    notUndone: { how: "failed", why: WHY, cause: { code: "restored" } },
  }));

const keyOf = ({ name, round }: StepStatus): VisitKey => ({ step: name, round });

import { isDeepStrictEqual } from "node:util";
import { CAUSES, type Cause, type CauseSpec } from "../../../kernel/causes.ts";
import type { Effect } from "../../../kernel/effects.ts";
import { type Outcome, waitFor } from "../../../kernel/outcome.ts";
import type { Residue } from "../../../kernel/residue.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import { type Duration, milliseconds } from "../../../kernel/time/duration.ts";
import { polling } from "../../../kernel/time/retry.ts";
import { type RunThing, stepJson } from "../../model/lifecycle.ts";
import type { Step } from "../../model/plan/plan.ts";
import type { StepStatus } from "../../model/run.ts";
import type { ProbeReport } from "../../model/step.ts";
import { stepsWith } from "../progress.ts";
import { withMoreResidue } from "../residue.ts";
import type { RunContext } from "../run-context.ts";
import type { RunLog } from "../run-log.ts";
import { isSameVisit, withReceipt } from "./visit.ts";

/** The outcome of a pass over a run. */
export type PassOutcome = Outcome<"acting" | "finished" | "canceled" | "step_failed">;

export const AT_ONCE = milliseconds(0);

/** One pass at one visit to a step. */
export interface Work {
  readonly run: RunThing;
  readonly step: Step;
  readonly visit: StepStatus;
  readonly context: RunContext;
  readonly log: RunLog;
  /** While the device is being told, and has not answered. */
  isActing: boolean;
}

export interface Saved {
  readonly reason: string;
  readonly after: Duration;
  readonly residue?: readonly Residue[];
  readonly effects?: readonly Effect[];
}

/** A pass that changed nothing and said nothing writes no event; one that only said something does, so that followers hear it. */
export function save(
  { run, step, visit, log }: Work,
  after: StepStatus,
  { reason, after: pause, residue = [], effects = [] }: Saved,
): PassOutcome {
  const said = [...log.effects(step.name), ...effects];
  const known = run.facts.steps.find((one) => isSameVisit(one, visit));
  const isNews = said.length > 0 || !isDeepStrictEqual(known, after);
  return waitFor(reason, pause, {
    ...(after.cause && { cause: after.cause }),
    ...(isNews && {
      facts: {
        steps: stepsWith(run, after).map(stepJson),
        ...(residue.length > 0 && withMoreResidue(run.facts, residue)),
      },
    }),
    effects: said,
  });
}

/** Waits, and says for what, and what is in the way. */
export const waitIn = (
  work: Work,
  { message = "", cause, receipt }: Pick<ProbeReport, "message" | "cause" | "receipt">,
  effects: readonly Effect[] = [],
): PassOutcome =>
  save(
    work,
    { ...withReceipt(work.visit, receipt), message, cause: inTheWayNow(cause) },
    {
      reason: `${work.step.name}: ${message || "under way"}`,
      after: pollAfter(work.visit.actedAt ?? work.visit.attemptStartedAt, work.context.clock),
      effects,
    },
  );

/** What shows only once the time is over is nothing to say before: the device may still be at it. */
function inTheWayNow(cause: Cause | undefined): Cause | null {
  const spec: CauseSpec | undefined = cause && CAUSES[cause.code];
  return cause === undefined || spec?.onlyWhenLate ? null : cause;
}

/** The longer something has been waited for, the less often it is asked for. */
export function pollAfter(since: Date | null, clock: Clock): Duration {
  const waited = since === null ? 0 : clock.now().getTime() - since.getTime();
  return milliseconds(Math.min(Math.max(waited / 4, polling.first), polling.most));
}

import type { Cause } from "../../kernel/causes.ts";
import { happened } from "../../kernel/outcome.ts";
import { eachLineOnce, type Residue, readResidue, residueFacts } from "../../kernel/residue.ts";
import { causeDetails } from "../../kernel/stored-cause.ts";
import { type RunThing, stepJson } from "../model/lifecycle.ts";
import { eachLeft, type LeftOver, leftOverOf, type VisitKey } from "../model/next-attempt.ts";
import type { EndedRunPhase, RunErrorCode, StepStatus } from "../model/run.ts";
import { isForRestartToCome } from "./next-boot.ts";
import { withoutResidueOf } from "./residue.ts";
import { effectsOfEnd, type RunContext, residueOnTarget } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";
import { residueWithout, whatIsLeftBy } from "./undo.ts";

export interface Ending {
  readonly message?: string;
  /** Beside what the run has listed before. */
  readonly residue?: readonly Residue[];
  readonly failure?: {
    readonly code: RunErrorCode;
    readonly retryable: boolean;
    readonly step: string;
    readonly cause: Cause;
  };
  readonly steps?: readonly StepStatus[];
  /** What of the attempt before is still not undone: for the attempt after. */
  readonly takeBackFirst?: LeftOver | null;
  /** What is still to be compensated of earlier attempts; absent: nothing. */
  readonly compensateFirst?: LeftOver | null;
  /** What was undone in this pass. */
  readonly undone?: readonly VisitKey[];
  /** Steps that were done and were to be undone: what is listed of them stays listed. */
  readonly notUndone?: readonly string[];
}

const EVENT_OF_END = { SUCCEEDED: "finished", FAILED: "step_failed", CANCELED: "canceled" } as const satisfies Record<
  EndedRunPhase,
  string
>;

/** The run's end and what it does to the target are one commit. */
export function endRun(run: RunThing, phase: EndedRunPhase, context: RunContext, log: RunLog, ending: Ending) {
  const { message = "", residue = [], failure, steps, undone = [], notUndone = [], compensateFirst = null } = ending;
  const done = doneNow(steps ?? run.facts.steps, phase, context).filter((name) => !notUndone.includes(name));
  const { takeBackFirst = passedOn(run, phase, done) } = ending;
  const error = failure
    ? {
        code: failure.code,
        message,
        retryable: failure.retryable,
        details: { ...causeDetails(failure.cause), step: failure.step },
      }
    : null;
  const known = residueWithout(undone, run, context, residueOnTarget(run, context));
  const come = whatIsLeftBy(
    done.map((step) => ({ step })),
    run,
    context,
  );
  const left = withoutResidueOf(come, eachLineOnce([...readResidue(run.facts), ...residue]));
  const now = context.clock.now();
  const cause = failure && { cause: failure.cause };
  const needsPerson = failure && (!failure.retryable || run.manual !== null) && { needsPerson: true as const };
  const onTarget = {
    phase,
    message,
    ...cause,
    ...needsPerson,
    at: now,
    residue: [...withoutResidueOf(come, known), ...left],
  };
  return happened(EVENT_OF_END[phase], {
    ...(message !== "" && { message }),
    ...cause,
    facts: {
      finishedAt: now.toISOString(),
      error,
      ...residueFacts(left),
      takeBackFirst: takeBackFirst && { ...takeBackFirst },
      ...(run.facts.compensateFirst !== null && { compensateFirst: compensateFirst && { ...compensateFirst } }),
      ...(steps && { steps: steps.map(stepJson) }),
    },
    effects: [...effectsOfEnd(run, onTarget, context), ...log.effects("")],
  });
}

/** An adoption leaves to the attempt after it what it was not to touch, unless that proved to be done, or all is well without. */
function passedOn({ action, facts }: RunThing, phase: EndedRunPhase, done: readonly string[]): LeftOver | null {
  if (action !== "adopt" || phase === "SUCCEEDED" || facts.takeBackFirst === null) return null;
  return leftOverOf(eachLeft(facts.takeBackFirst).filter(({ step }) => !done.includes(step)));
}

/**
 * By this run itself, and not undone since: what an earlier one left of them has come about, or was done anew. What is set for a
 * restart to come, in a run that did not come to it, is still just what an earlier one left.
 */
const doneNow = (visits: readonly StepStatus[], phase: EndedRunPhase, context: RunContext): string[] =>
  visits
    .filter(({ state, carriedOver, takenBack }) => state === "SUCCEEDED" && !carriedOver && !takenBack)
    .filter((visit) => phase === "SUCCEEDED" || !isForRestartToCome(visit, visits, context))
    .map(({ name }) => name);

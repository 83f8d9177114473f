import { type Effect, type MoveEffect, move, wake } from "../../kernel/effects.ts";
import { happened } from "../../kernel/outcome.ts";
import { installLifecycle } from "../../lifecycles/install/lifecycle.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import { type RunThing, stepJson } from "../model/lifecycle.ts";
import { eachLeft, type LeftOver, leftOverOf } from "../model/next-attempt.ts";
import type { EndedRunPhase, RunErrorCode, StepStatus } from "../model/run.ts";
import { CAUSE_OF_END, conditionsAtEnd, residueAfter, withoutResidueOf } from "./machine-after-run.ts";
import { isForRestartToCome } from "./next-boot.ts";
import { seenAt } from "./progress.ts";
import type { RunContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";
import { beginningsOf, residueWithout } from "./undo.ts";

export interface Ending {
  readonly message?: string;
  /** Beside what the run has listed before. */
  readonly residue?: readonly string[];
  readonly failure?: { readonly code: RunErrorCode; readonly retryable: boolean; readonly step: string };
  readonly steps?: readonly StepStatus[];
  /** What of the attempt before is still not taken back: for the attempt after. */
  readonly takeBackFirst?: LeftOver | null;
  /** What was taken back in this look, by the names of the steps. */
  readonly undone?: readonly string[];
}

const EVENT_OF_END = { SUCCEEDED: "finished", FAILED: "step_failed", CANCELED: "canceled" } as const satisfies Record<
  EndedRunPhase,
  string
>;

/** The run's end, the machine's phase and its conditions are one commit; so is that an install does not outlive its run. */
export function endRun(run: RunThing, phase: EndedRunPhase, context: RunContext, log: RunLog, ending: Ending) {
  const { message = "", residue = [], failure, steps, undone = [] } = ending;
  const done = doneNow(steps ?? run.facts.steps, phase, context);
  const { takeBackFirst = passedOn(run, phase, done) } = ending;
  const error = failure
    ? { code: failure.code, message, retryable: failure.retryable, details: { step: failure.step } }
    : null;
  const known = residueWithout(undone, run, context, run.machine.facts.residue);
  const come = beginningsOf(done, run, context);
  const left = withoutResidueOf(come, [...new Set([...run.facts.residue, ...residue])]);
  const now = context.clock.now();
  const machine = move(machineLifecycle, run.machine.id, CAUSE_OF_END[phase], {
    // Where there is none, the history tells what happened by its cause, and not by an empty text.
    ...(message !== "" && { message }),
    facts: {
      lastRunId: run.id,
      residue: residueAfter(run.plan, phase, [...withoutResidueOf(come, known), ...left]),
    },
    observed: seenAt(conditionsAtEnd(run.plan, phase, message, run.machine.conditions), now),
  });
  // A machine that rests is not looked at by itself: its node would stay as it is until somebody happens to look.
  const hasNodeToSeeTo = run.machine.facts.cordoned || run.machine.state.drain === true;
  const seenTo = hasNodeToSeeTo ? [wake(machineLifecycle, run.machine.id)] : [];
  const { moved, said } = oneChange(machine, log.effects(""));
  return happened(EVENT_OF_END[phase], {
    ...(message !== "" && { message }),
    facts: {
      finishedAt: now.toISOString(),
      error,
      residue: left,
      takeBackFirst: takeBackFirst && { ...takeBackFirst },
      ...(steps && { steps: steps.map(stepJson) }),
    },
    effects: [moved, ...seenTo, ...installLetGo(run, phase, message), ...said],
  });
}

/** An adoption leaves to the attempt after it what it was not to touch, unless that proved to be done, or all is well without. */
function passedOn({ action, facts }: RunThing, phase: EndedRunPhase, done: readonly string[]): LeftOver | null {
  if (action !== "adopt" || phase === "SUCCEEDED" || facts.takeBackFirst === null) return null;
  return leftOverOf(eachLeft(facts.takeBackFirst).filter(({ step }) => !done.includes(step)));
}

/**
 * By this run itself, and not taken back since: what an earlier one left of them has come about, or was done anew. What is set for a
 * restart to come, in a run that did not come to it, is still just what an earlier one left.
 */
const doneNow = (visits: readonly StepStatus[], phase: EndedRunPhase, context: RunContext): string[] =>
  visits
    .filter(({ state, carriedOver, takenBack }) => state === "SUCCEEDED" && !carriedOver && !takenBack)
    .filter((visit) => phase === "SUCCEEDED" || !isForRestartToCome(visit, visits, context))
    .map(({ name }) => name);

/** A thing is changed once in a commit: what was found out of the machine on the way goes along with its move. */
function oneChange(
  move: MoveEffect,
  said: readonly Effect[],
): { readonly moved: MoveEffect; readonly said: readonly Effect[] } {
  const found = said.filter(
    (effect) => effect.type === "observe" && effect.kind === move.kind && effect.id === move.id,
  );
  const facts = found.map((effect) => (effect.type === "observe" ? effect.facts : {}));
  return {
    moved: { ...move, facts: Object.assign({}, ...facts, move.facts) },
    said: said.filter((effect) => !found.includes(effect)),
  };
}

/** Who canceled a run does not want the machine installed at its next boot after all. */
function installLetGo({ id, plan, machine }: RunThing, phase: EndedRunPhase, message: string): Effect[] {
  if (!plan.steps.some(({ kind }) => kind === "repave")) return [];
  const why = `run ${id} ended ${phase}${message === "" ? "" : `: ${message}`}`;
  return [move(installLifecycle, machine.id, "run_ended", { ifPossible: true, message: why })];
}

import { isDeepStrictEqual } from "node:util";
import type { JsonObject } from "../kernel/lifecycle.ts";
import type { EndedRunPhase, RunAction, RunPhase, StepStatus } from "./run.ts";
import { toDoAgain } from "./step-visit.ts";

/** What people do with a run that has ended: each makes the next attempt at the same job. */
export type NextAttempt = Exclude<RunAction, "start">;

interface ActionRule {
  /** As the command line spells it. */
  readonly command: string;
  readonly after: readonly EndedRunPhase[];
  /** Proven steps are not done again. */
  readonly carriesProven: boolean;
}

// biome-ignore format: a table is read by its columns
export const ACTION_RULES: Readonly<Record<NextAttempt, ActionRule>> = {
  retry:         { command: "retry",         after: ["FAILED"],                          carriesProven: true },
  resume:        { command: "resume",        after: ["FAILED", "CANCELED"],              carriesProven: true },
  rerun:         { command: "rerun",         after: ["SUCCEEDED", "FAILED", "CANCELED"], carriesProven: false },
  restart_clean: { command: "restart-clean", after: ["FAILED", "CANCELED"],              carriesProven: false },
  adopt:         { command: "adopt",         after: ["FAILED", "CANCELED"],              carriesProven: true },
};

export const mayFollowPhase = (action: NextAttempt, phase: RunPhase): boolean =>
  ACTION_RULES[action].after.some((one) => one === phase);

/** What a step of an earlier attempt began and did not take back, by the evidence of that time. JSON to the compiler, as types are. */
export type LeftByStep = { readonly step: string; readonly evidence: JsonObject };

/**
 * All that an earlier attempt has left: what it was at, and what its proven steps had set for the next boot. The first stands by
 * itself, as it does in runs from before there could be more.
 */
export type LeftOver = LeftByStep & { readonly more?: readonly LeftByStep[] };

/** What is there twice is one thing to take back. */
export function leftOverOf(left: readonly LeftByStep[]): LeftOver | null {
  const [first, ...more] = left.filter((one, at) => left.findIndex((other) => isDeepStrictEqual(one, other)) === at);
  return first === undefined ? null : { ...first, ...(more.length > 0 && { more }) };
}

export const eachLeft = ({ more = [], ...first }: LeftOver): readonly LeftByStep[] => [first, ...more];

export interface Inheritance {
  readonly steps: readonly StepStatus[];
  /** Taken back before anything else is done. */
  readonly takeBackFirst: LeftOver | null;
}

/**
 * What an attempt has of the one before it. Retry begins the failed step with evidence of its own; resume and adopt keep what was
 * noted then, so that the step is asked for first; rerun and restart clean begin anew. Whichever it is, what was left open is not
 * to go on beside what is begun now.
 *
 * An attempt that ended before it took back what the one before it had left passes that on, beside what its own steps know of.
 */
export function inheritFrom(previous: Inheritance, action: NextAttempt): Inheritance {
  const { steps, takeBackFirst: passedOn } = previous;
  const done = steps.filter(({ state }) => state === "SUCCEEDED");
  const proven = done.map((step) => ({ ...step, carriedOver: true, toTakeBack: null }));
  const unfinished = steps.find(({ state }) => state !== "SUCCEEDED");
  const armed = done.flatMap((step) => leftBy(step, step.toTakeBack));
  const toTakeBack = (...more: readonly LeftByStep[]) =>
    leftOverOf([...(passedOn ? eachLeft(passedOn) : []), ...more, ...armed]);
  const left = toTakeBack(...leftBy(unfinished, unfinished?.toTakeBack));
  switch (action) {
    case "retry":
      return { steps: proven, takeBackFirst: left };
    case "resume":
      if (unfinished?.evidence == null) return { steps: proven, takeBackFirst: left };
      return { steps: [...proven, resumed(unfinished)], takeBackFirst: toTakeBack() };
    case "adopt": {
      // Who only looks takes nothing back, however it ends: it is left to whoever begins anew.
      const known = unfinished?.evidence == null ? [] : [{ ...resumed(unfinished), toTakeBack: null }];
      return { steps: [...proven, ...known], takeBackFirst: left };
    }
    case "rerun":
      return { steps: [], takeBackFirst: left };
    case "restart_clean": {
      // Taken back already, perhaps; once more does no harm, and what people did since may have brought it back.
      const begun = unfinished?.toTakeBack ?? (unfinished?.actingAt == null ? null : unfinished.evidence);
      return { steps: [], takeBackFirst: toTakeBack(...leftBy(unfinished, begun)) };
    }
  }
}

const leftBy = (step: StepStatus | undefined, evidence: JsonObject | null | undefined): readonly LeftByStep[] =>
  step === undefined || evidence == null ? [] : [{ step: step.name, evidence }];

/**
 * The visit goes on by the evidence of before. Who acted then is not us, and when is kept: right after a cancel the device may
 * still be about to obey.
 */
const resumed = (step: StepStatus): StepStatus => ({
  ...toDoAgain(step),
  evidence: step.evidence,
  actingAt: step.actedAt ?? step.actingAt,
  resumed: true,
});

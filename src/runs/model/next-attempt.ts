import { isDeepStrictEqual } from "node:util";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { settled, toDoAgain } from "../executor/step/visit.ts";
import type { EndedRunPhase, RunAction, RunPhase, StepStatus } from "./run.ts";

/** What people do with a run that has ended: each makes the next attempt at the same job. */
export type NextAttempt = Exclude<RunAction, "start" | "cancel">;

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

/** One visit to a step. The round is told from the second on. JSON to the compiler, as types are. */
export type VisitKey = { readonly step: string; readonly round?: number };

/**
 * What a step of an earlier attempt began and did not undo, by the evidence of that time, and with the receipt where there was
 * one.
 */
export type LeftByStep = VisitKey & { readonly evidence: JsonObject; readonly receipt?: JsonObject };

/**
 * All that an earlier attempt has left: what it was at, and what its proven steps had set for the next boot. The first stands by
 * itself, as it does in runs from before there could be more.
 */
export type LeftOver = LeftByStep & { readonly more?: readonly LeftByStep[] };

/** What is there twice is one thing to undo. */
export function leftOverOf(left: readonly LeftByStep[]): LeftOver | null {
  const [first, ...more] = left.filter((one, at) => left.findIndex((other) => isDeepStrictEqual(one, other)) === at);
  return first === undefined ? null : { ...first, ...(more.length > 0 && { more }) };
}

export const eachLeft = ({ more = [], ...first }: LeftOver): readonly LeftByStep[] => [first, ...more];

export interface Inheritance {
  readonly steps: readonly StepStatus[];
  /** Undone before anything else is done. */
  readonly takeBackFirst: LeftOver | null;
}

/**
 * What an attempt has of the one before it. Retry begins the failed step with evidence of its own; resume and adopt keep what was
 * noted then, so that the step is asked for first; rerun and restart clean begin anew. Whichever it is, what was left open is not
 * to go on beside what is begun now.
 *
 * An attempt that ended before it undid what the one before it had left passes that on, beside what its own steps know of.
 *
 * Steps stay in the plan's order: one that was to be done again, and was not, keeps its place before those that are proven.
 */
export function inheritFrom(previous: Inheritance, action: NextAttempt): Inheritance {
  const { steps, takeBackFirst: passedOn } = previous;
  const done = steps.filter(({ state }) => state === "SUCCEEDED");
  const leftBefore = passedOn ? eachLeft(passedOn) : [];
  const lastDone = steps.findLastIndex(({ state }) => state === "SUCCEEDED");
  const carried = steps
    .slice(0, lastDone + 1)
    .map((step) => (step.state === "SUCCEEDED" ? provenBefore(step, leftBefore) : settled(toDoAgain(step))));
  const firstOpen = steps.findIndex(({ state }) => state !== "SUCCEEDED");
  const goingOnWith = (visit: StepStatus) => carried.toSpliced(firstOpen, 1, visit);
  // Those after the first were waiting for it to be done again.
  const [unfinished, ...waiting] = steps.filter(({ state }) => state !== "SUCCEEDED");
  const armed = [...waiting, ...done].flatMap(leftToTakeBack);
  const toTakeBack = (...more: readonly LeftByStep[]) => leftOverOf([...leftBefore, ...more, ...armed]);
  const left = toTakeBack(...leftToTakeBack(unfinished));
  switch (action) {
    case "retry":
      return { steps: carried, takeBackFirst: left };
    case "resume":
      if (unfinished?.evidence == null) return { steps: carried, takeBackFirst: left };
      return { steps: goingOnWith(resumed(unfinished)), takeBackFirst: toTakeBack() };
    case "adopt":
      if (unfinished?.evidence == null) return { steps: carried, takeBackFirst: left };
      // Who only looks takes nothing back, however it ends: it is left to whoever begins anew.
      return { steps: goingOnWith(settled(resumed(unfinished))), takeBackFirst: left };
    case "rerun":
      return { steps: [], takeBackFirst: left };
    case "restart_clean": {
      // Undone already, perhaps; once more does no harm, and what people did since may have brought it back.
      const begun = leftToTakeBack(unfinished);
      return { steps: [], takeBackFirst: toTakeBack(...(begun.length > 0 ? begun : begunBy(unfinished))) };
    }
  }
}

/** What an adoption found set for the next boot, and left to be undone, is so before this attempt acts: it has to be set again. */
const provenBefore = (step: StepStatus, left: readonly LeftByStep[]): StepStatus => ({
  ...settled(step),
  carriedOver: true,
  takenBack: step.takenBack || left.some((one) => one.step === step.name),
});

export const keyOfVisit = ({ name, round }: Pick<StepStatus, "name" | "round">): VisitKey => ({
  step: name,
  ...(round > 1 && { round }),
});

/** By the evidence and the receipt of an action: what is given to whoever undoes it. */
export const leftOf = (
  visit: Pick<StepStatus, "name" | "round">,
  evidence: JsonObject,
  receipt: JsonObject | null,
): LeftByStep => ({
  ...keyOfVisit(visit),
  evidence,
  ...(receipt && { receipt }),
});

const leftToTakeBack = (visit: StepStatus | undefined): readonly LeftByStep[] =>
  visit == null || visit.toTakeBack === null ? [] : [leftOf(visit, visit.toTakeBack, visit.receiptToTakeBack)];

const begunBy = (visit: StepStatus | undefined): readonly LeftByStep[] =>
  visit?.actingAt == null || visit.evidence === null ? [] : [leftOf(visit, visit.evidence, visit.receipt)];

/**
 * The visit goes on by the evidence of before. Who acted then is not us, and when is kept: right after a cancel the device may
 * still be about to obey.
 */
export const resumed = (step: StepStatus): StepStatus => ({
  ...toDoAgain(step),
  evidence: step.evidence,
  receipt: step.receipt,
  actingAt: step.actedAt ?? step.streamedAt ?? step.actingAt,
  resumed: true,
});

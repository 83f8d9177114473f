import { isDeepStrictEqual } from "node:util";
import { eachLineOnce, type Residue } from "../../kernel/residue.ts";
import { settled, toDoAgain } from "../executor/step/visit.ts";
import { eachLeft, type LeftByStep, type LeftOver, leftOf, leftOverOf, resumed } from "../model/next-attempt.ts";
import type { Plan } from "../model/plan/plan.ts";
import { isDone, type RunAction, type StepStatus } from "../model/run.ts";
import { nextInWorkflow } from "./next-stage.ts";
import type { Workflow } from "./workflow.ts";

/** What an attempt at a workflow has of those before it. */
export interface StageInheritance {
  readonly steps: readonly StepStatus[];
  /** Undone before anything else is done. */
  readonly takeBackFirst: LeftOver | null;
  /** What earlier attempts did and `steps` does not tell: for a cancel. In the order of being done. */
  readonly doneBefore: readonly LeftByStep[];
  /** What is compensated before the first stage, in this order; null: nothing. */
  readonly compensateFirst: LeftOver | null;
  /** What of it is done for good. */
  readonly residue: readonly Residue[];
}

export interface EndedAttempt extends Omit<StageInheritance, "residue"> {
  readonly plan: Plan;
  readonly params: Readonly<Record<string, string>>;
}

/** What a stage of an attempt has done and nobody has undone. One that was found done is nobody's to undo. */
export const workOf = ({
  state,
  actingAt,
  takenBack,
  evidence,
  receipt,
  ...visit
}: StepStatus): readonly LeftByStep[] =>
  state === "SUCCEEDED" && actingAt !== null && !takenBack && evidence !== null
    ? [leftOf(visit, evidence, receipt)]
    : [];

/** What a stage began and could neither prove nor undo. */
export const openOf = ({ toTakeBack, receiptToTakeBack, ...visit }: StepStatus): readonly LeftByStep[] =>
  toTakeBack === null ? [] : [leftOf(visit, toTakeBack, receiptToTakeBack)];

/**
 * What an attempt has of the one before it. The history stays as it is, also where a stage failed and the workflow knew what to do
 * about it. Retry and adopt enter the stage again at which the attempt before ended; resume goes back to the last safe stage; rerun
 * and restart clean begin with the first stage, and a cancel undoes.
 */
export function inheritStages(
  previous: EndedAttempt,
  action: Exclude<RunAction, "start">,
  workflow: Workflow,
): StageInheritance {
  const { steps } = previous;
  const toCompensate = notCompensated(previous);
  const doneBefore = [...toCompensate.toReversed(), ...previous.doneBefore];
  const left = leftOverOf([
    ...(previous.takeBackFirst ? eachLeft(previous.takeBackFirst) : []),
    ...steps.flatMap(openOf),
  ]);
  const work = [...doneBefore, ...steps.flatMap(workOf)];
  const nothingFirst = { compensateFirst: null, residue: [] };
  switch (action) {
    case "rerun":
      return { ...nothingFirst, steps: [], takeBackFirst: left, doneBefore: work };
    case "restart_clean":
      return { steps: [], takeBackFirst: left, doneBefore: [], ...compensationOf(work, workflow) };
    case "cancel": {
      // What was left open is undone in its turn, also where the attempt before tried that when it ended, and got no answer.
      const isUndone = ({ takenBack, toTakeBack }: StepStatus) => takenBack && toTakeBack === null;
      const all = steps.map((visit) => ({ ...visit, carriedOver: true, takenBack: isUndone(visit) }));
      return { ...nothingFirst, steps: all, takeBackFirst: previous.takeBackFirst, doneBefore };
    }
    case "adopt":
      // Who looks first does not undo what it is there to find.
      return {
        ...nothingFirst,
        takeBackFirst: left,
        doneBefore,
        steps: enteredAgain(previous, workflow, action),
      };
    default: {
      const again = { takeBackFirst: left, doneBefore: previous.doneBefore, residue: [] };
      const same = { ...again, compensateFirst: leftOverOf(toCompensate) };
      return action === "resume"
        ? { ...same, ...resumedAt(previous, workflow, left) }
        : { ...same, steps: enteredAgain(previous, workflow, action) };
    }
  }
}

/** What a restart from clean was to undo, and ended before: the last first. What it did try is left open, and is told there. */
function notCompensated({ compensateFirst, takeBackFirst }: EndedAttempt): readonly LeftByStep[] {
  const leftOpen = takeBackFirst ? eachLeft(takeBackFirst) : [];
  return (compensateFirst ? eachLeft(compensateFirst) : []).filter(
    (one) => !leftOpen.some((other) => isDeepStrictEqual(one, other)),
  );
}

/** The last first. */
function compensationOf(
  work: readonly LeftByStep[],
  { stages }: Workflow,
): Pick<StageInheritance, "compensateFirst" | "residue"> {
  const compensationFor = ({ step }: LeftByStep) => stages.find(({ name }) => name === step)?.compensation;
  const toUndo = work.filter((each) => compensationFor(each) === "undo").toReversed();
  const residue = work.flatMap((each) => {
    const compensation = compensationFor(each);
    return typeof compensation === "object" ? [{ step: each.step, what: compensation.stays }] : [];
  });
  return { compensateFirst: leftOverOf(toUndo), residue: eachLineOnce(residue) };
}

const carried = (visit: StepStatus): StepStatus => ({ ...settled(visit), carriedOver: true });

/** The visit at which the attempt ended; undefined where it was stopped between two stages. */
function endedAt({ plan, params, steps }: EndedAttempt, workflow: Workflow): StepStatus | undefined {
  const last = steps.at(-1);
  if (last === undefined || !isDone(last)) return last;
  // It was given up, or a bound was reached, by what this stage had found.
  const next = nextInWorkflow(workflow, { plan, params, visits: steps.map(carried) });
  return next.type === "failed" ? last : undefined;
}

function enteredAgain(previous: EndedAttempt, workflow: Workflow, action: "retry" | "adopt"): StepStatus[] {
  const unfinished = endedAt(previous, workflow);
  return previous.steps.map((visit) => {
    if (visit !== unfinished) return visit.state === "WAITING" ? settled(toDoAgain(visit)) : carried(visit);
    return action === "adopt" && visit.evidence !== null ? settled(resumed(visit)) : settled(toDoAgain(visit));
  });
}

/** Where that is a stage before the one that failed, it is entered once more; the stage that failed goes on by its evidence. */
function resumedAt(
  previous: EndedAttempt,
  workflow: Workflow,
  left: LeftOver | null,
): Pick<StageInheritance, "steps" | "takeBackFirst"> {
  const { steps } = previous;
  const unfinished = endedAt(previous, workflow);
  const isSafe = ({ name }: StepStatus) =>
    workflow.stages.some((stage) => stage.name === name && stage.isSafe === true);
  const safe = steps.findLast(isSafe);
  if (unfinished !== undefined && (safe === undefined || safe.name === unfinished.name)) {
    if (unfinished.evidence === null) return { steps: enteredAgain(previous, workflow, "retry"), takeBackFirst: left };
    const others = steps.filter((visit) => visit !== unfinished);
    const takeBackFirst = leftOverOf([
      ...(previous.takeBackFirst ? eachLeft(previous.takeBackFirst) : []),
      ...others.flatMap(openOf),
    ]);
    return { steps: steps.map((visit) => (visit === unfinished ? resumed(visit) : carried(visit))), takeBackFirst };
  }
  if (safe === undefined || unfinished === undefined) return { steps: steps.map(carried), takeBackFirst: left };
  const round = steps.filter(({ name }) => name === safe.name).length + 1;
  return { steps: [...steps.map(carried), settled({ ...toDoAgain(safe), round })], takeBackFirst: left };
}

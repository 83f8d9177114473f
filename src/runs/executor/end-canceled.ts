import type { RunThing } from "../model/lifecycle.ts";
import { keyOfVisit, leftOverOf } from "../model/next-attempt.ts";
import type { StepStatus } from "../model/run.ts";
import { endWithoutSuccess } from "./end-without-success.ts";
import type { RunContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";
import * as visits from "./step/visit.ts";
import type { PassOutcome } from "./step/work.ts";
import { isSettled, type Tried, type UndoResult } from "./undo.ts";

/** What a cancel has undone in its last pass. */
export interface LastUndone {
  /** What earlier attempts left open; absent where this one was not to touch it. */
  readonly earlier?: readonly Tried[];
  /** What became of the visits that were under way. */
  readonly begun?: ReadonlyMap<StepStatus, UndoResult>;
}

export const isUnderWay = ({ state }: StepStatus): boolean => state === "RUNNING" || state === "WAITING";

/** The end of every cancel: what could not be undone is listed, and kept for the attempt after. */
export async function endCanceled(
  run: RunThing,
  { earlier, begun = new Map() }: LastUndone,
  context: RunContext,
  log: RunLog,
): Promise<PassOutcome> {
  const { steps } = run.facts;
  const tried = earlier ?? [];
  const residue = [
    ...tried.flatMap(({ remains }) => remains?.left ?? []),
    ...[...begun.values()].flatMap(({ left }) => left ?? []),
  ];
  for (const one of residue) log.staysBehind(one);
  log.say("the run was canceled");
  const ended = (visit: StepStatus): StepStatus => {
    if (!isUnderWay(visit)) return visit;
    const canceled = visits.canceled(visit, context.clock.now());
    return begun.get(visit)?.isSettled ? visits.settled(canceled) : canceled;
  };
  return endWithoutSuccess(run, "CANCELED", context, log, {
    residue,
    ...(earlier && {
      takeBackFirst: leftOverOf(tried.filter(({ remains }) => !isSettled(remains)).map((one) => one.left)),
    }),
    undone: [
      ...tried.filter(({ remains }) => isSettled(remains)).map((one) => one.left),
      ...[...begun].filter(([, end]) => end.isSettled).map(([visit]) => keyOfVisit(visit)),
    ],
    ...(steps.some(isUnderWay) && { steps: steps.map(ended) }),
  });
}

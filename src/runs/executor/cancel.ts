import type { RunThing } from "../model/lifecycle.ts";
import { eachLeft, leftOf, leftOverOf } from "../model/next-attempt.ts";
import type { StepStatus } from "../model/run.ts";
import { endUnwell } from "./end-without-success.ts";
import type { RunContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";
import * as visits from "./step/visit.ts";
import type { Looked } from "./step/work.ts";
import { isSettled, type TakenBack, takeBackAll, takeBackForGood } from "./undo.ts";

/** What could be taken back is; what could not is listed, and kept for the attempt after. It always ends. */
export async function cancelRun(run: RunThing, context: RunContext, log: RunLog): Promise<Looked> {
  const { takeBackFirst, steps } = run.facts;
  const isOnlyLooking = run.action === "adopt";
  const earlier =
    takeBackFirst === null || isOnlyLooking ? [] : await takeBackAll(run, eachLeft(takeBackFirst), context, log);
  // One that has FAILED was taken back when it did. There are two while something is set again for the one after it.
  const begun = steps.filter(({ state, toTakeBack }) => state !== "FAILED" && toTakeBack !== null).toReversed();
  const ends = new Map<StepStatus, TakenBack>();
  for (const visit of begun)
    ends.set(visit, await takeBackForGood({ run, round: visit.round, ...begunBy(visit) }, context, log));
  const residue = [
    ...earlier.map(({ remains }) => remains?.left ?? null),
    ...[...ends.values()].map(({ left }) => left),
  ];
  const left = residue.filter((one) => one !== null);
  for (const one of left) log.staysBehind(one);
  log.say("the run was canceled");
  const settled = begun.filter((visit) => ends.get(visit)?.isSettled);
  const isUnderWay = ({ state }: StepStatus) => state === "RUNNING" || state === "WAITING";
  const ended = (visit: StepStatus): StepStatus => {
    const canceled = visits.canceled(visit, context.clock.now());
    return settled.includes(visit) ? visits.settled(canceled) : canceled;
  };
  return endUnwell(run, "CANCELED", context, log, {
    residue: left,
    ...(!isOnlyLooking && {
      takeBackFirst: leftOverOf(earlier.filter(({ remains }) => !isSettled(remains)).map((one) => one.left)),
    }),
    undone: [
      ...earlier.filter(({ remains }) => isSettled(remains)).map((one) => one.left.step),
      ...settled.map(({ name }) => name),
    ],
    ...(steps.some(isUnderWay) && { steps: steps.map((visit) => (isUnderWay(visit) ? ended(visit) : visit)) }),
  });
}

const begunBy = ({ name, toTakeBack, receiptToTakeBack }: StepStatus) =>
  leftOf(name, toTakeBack ?? {}, receiptToTakeBack);

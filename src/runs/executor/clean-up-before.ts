import { waitFor } from "../../kernel/outcome.ts";
import { residueLines } from "../../kernel/residue.ts";
import { type Duration, describeDuration, milliseconds } from "../../kernel/time/duration.ts";
import type { RunThing } from "../model/lifecycle.ts";
import { eachLeft, type LeftByStep, type LeftOver, leftOverOf } from "../model/next-attempt.ts";
import { timeoutOf } from "../model/plan/plan.ts";
import { STEP_DEFAULTS } from "../model/step.ts";
import { endWithoutSuccess } from "./end-without-success.ts";
import { withMoreResidue } from "./residue.ts";
import type { RunContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";
import { AT_ONCE, type PassOutcome, pollAfter } from "./step/work.ts";
import { forgetResidueOf, inTheWay, isSettled, isStillToDo, type Tried, undoAll } from "./undo.ts";

/**
 * What the attempt before has left is undone before anything is begun. A device that does not answer is asked for as long as
 * the step may take, and then the run has failed: beginning all the same could do things twice. Where we are not let in, the run has
 * failed at once, and what is to be undone stays for the attempt after: only a person can change that, and nobody at the device
 * has said no. What a device refuses to undo is listed, and the run goes on, since asking again would change nothing. So it
 * does, after one try, where the run itself ends what was left before it begins anything that this could disturb.
 *
 * What an attempt left open may be undone in any order. What earlier attempts did is undone the last first: the undo of a stage is not
 * begun before that of the stage after it is over.
 */
export async function cleanUpBefore(
  run: RunThing,
  leftOver: LeftOver,
  context: RunContext,
  log: RunLog,
): Promise<PassOutcome> {
  const { compensateFirst } = run.facts;
  const from = leftOver === compensateFirst ? "compensateFirst" : "takeBackFirst";
  const since = run.facts.undoingSince ?? run.facts.startedAt;
  const left = eachLeft(leftOver);
  const isFirstLook = run.outcome === null;
  if (isFirstLook) log.say(`undoing what ${named(left)} of the previous attempt left`);
  const endedBy = context.target.endsLeftOver?.(run, context.steps) ?? (() => undefined);
  const isBlocking = (one: Tried) => isStillToDo(one.remains) && endedBy(one.left) === undefined;
  const isOrdered = from === "compensateFirst";
  const tried = await undoAll(run, left, context, log, (one) => isOrdered && isBlocking(one));
  const unsettled = tried.filter(({ remains }) => isStillToDo(remains));
  const blocking = unsettled.filter(isBlocking);
  const open = blocking.length > 0 ? unsettled : [];
  const listed = tried.flatMap(({ left: one, remains }) =>
    remains === null || open.some(({ left: still }) => still === one)
      ? []
      : [{ remains, end: isStillToDo(remains) ? endedBy(one) : undefined }],
  );
  for (const { remains, end } of listed) log.staysBehind(remains.left, end);
  const stays = listed.map(({ remains }) => remains.left);
  const still = [...open.map((one) => one.left), ...left.slice(tried.length)];
  const hasNext = isOrdered ? still.length > 0 : still.length === 0 && compensateFirst !== null;
  const undone = tried.filter(({ remains }) => isSettled(remains)).map((one) => one.left);
  forgetResidueOf(undone, run, context, log);
  const facts = {
    // As it is where nothing came of it, so that a pass without effect writes nothing.
    ...(still.length < left.length && {
      [from]: leftOverOf(still),
      // Each stage has the time of its own, whatever those before it took.
      ...(hasNext && { undoingSince: context.clock.now().toISOString() }),
      ...(isOrdered && !hasNext && { undoingSince: null }),
    }),
    ...(stays.length > 0 && withMoreResidue(run.facts, stays)),
  };
  const [first] = still;
  if (first === undefined)
    return waitFor(`${leftOver.step}: undone`, AT_ONCE, { facts, effects: log.effects(leftOver.step) });
  const within = longestOf(run, isOrdered ? [first] : still);
  const waited = since === null ? 0 : context.clock.now().getTime() - since.getTime();
  const what = `what ${named(still)} of the previous attempt left is not undone`;
  const inWay = open.flatMap(({ remains }) => remains ?? []);
  const leftInWay = inWay.map(({ left: one }) => one);
  const cause = blocking.find(({ remains }) => remains !== null)?.remains?.cause;
  const isShutOut = blocking.some(({ remains }) => remains?.is === "shut_out");
  if (waited <= within && !isShutOut)
    return waitFor(`${what} yet: ${residueLines(leftInWay).join("; ")}`, pollAfter(since, context.clock), {
      ...(cause && { cause }),
      facts,
      effects: log.effects(first.step),
    });
  return endWithoutSuccess(run, "FAILED", context, log, {
    message: `${first.step}: ${what}${isShutOut ? "" : ` within ${describeDuration(within)}`}: ${inWay.map(inTheWay).join("; ")}`,
    failure: { code: "EXECUTION_FAILED", retryable: true, step: first.step, cause: cause ?? { code: "unknown" } },
    residue: [...stays, ...leftInWay],
    // A stage whose undo was tried counts from here on as left open. Those before it were not touched.
    takeBackFirst: leftOverOf(open.map((one) => one.left)),
    compensateFirst: isOrdered ? leftOverOf(left.slice(tried.length)) : compensateFirst,
    undone,
  });
}

const named = (left: readonly LeftByStep[]): string =>
  `${left.length === 1 ? "step" : "steps"} ${left.map(({ step }) => step).join(", ")}`;

/** As long as the steps may take that left something. */
function longestOf({ plan }: RunThing, left: readonly LeftByStep[]): Duration {
  const each = left.map(({ step }) => plan.steps.find(({ name }) => name === step));
  return milliseconds(Math.max(...each.map((planned) => (planned ? timeoutOf(planned) : STEP_DEFAULTS.timeout))));
}

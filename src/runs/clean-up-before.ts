import { type Duration, describeDuration, milliseconds } from "../kernel/duration.ts";
import { waitFor } from "../kernel/outcome.ts";
import { endUnwell } from "./end-unwell.ts";
import type { RunThing } from "./lifecycle.ts";
import { timeoutOf } from "./plan.ts";
import { eachLeft, type LeftByStep, type LeftOver, leftOverOf } from "./run-action.ts";
import type { RunContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";
import { STEP_DEFAULTS } from "./step.ts";
import { AT_ONCE, type Looked, pollAfter } from "./step-work.ts";
import { takeBackAll } from "./take-back.ts";

/**
 * What the attempt before has left is taken back before anything is begun. A device that does not answer is asked for as long as
 * the step may take, and then the run has failed: beginning all the same could do things twice. What a device refuses to take back
 * is listed, and the run goes on, since asking again would change nothing.
 */
export async function cleanUpBefore(
  run: RunThing,
  leftOver: LeftOver,
  context: RunContext,
  log: RunLog,
): Promise<Looked> {
  const { startedAt, residue } = run.facts;
  const left = eachLeft(leftOver);
  const isFirstLook = run.outcome === null;
  if (isFirstLook) log.say(`taking back what ${named(left)} of the attempt before has left`);
  const tried = await takeBackAll(run, left, context, log);
  const open = tried.filter(({ remains }) => remains?.is === "open");
  const stays = tried.flatMap(({ remains }) => (remains === null || remains.is === "open" ? [] : [remains.text]));
  for (const text of stays) log.say(`stays behind: ${text}`, "stderr");
  const still = open.map((one) => one.left);
  const facts = {
    // As it is where nothing came of it, so that a look in vain writes nothing.
    ...(still.length < left.length && { takeBackFirst: leftOverOf(still) }),
    ...(stays.length > 0 && { residue: [...new Set([...residue, ...stays])] }),
  };
  const [first] = still;
  if (first === undefined)
    return waitFor(`${leftOver.step}: taken back`, AT_ONCE, { facts, effects: log.effects(leftOver.step) });
  const within = longestOf(run, still);
  const waited = startedAt === null ? 0 : context.clock.now().getTime() - startedAt.getTime();
  const what = `what ${named(still)} of the attempt before has left is not taken back`;
  const texts = open.map(({ remains }) => remains?.text ?? "");
  if (waited <= within)
    return waitFor(`${what} yet: ${texts.join("; ")}`, pollAfter(startedAt, context.clock), {
      facts,
      effects: log.effects(first.step),
    });
  return endUnwell(run, "FAILED", context, log, {
    message: `${first.step}: ${what} within ${describeDuration(within)}: ${texts.join("; ")}`,
    failure: { code: "EXECUTION_FAILED", retryable: true, step: first.step },
    residue: [...stays, ...texts],
    takeBackFirst: leftOverOf(still),
  });
}

const named = (left: readonly LeftByStep[]): string =>
  `${left.length === 1 ? "step" : "steps"} ${left.map(({ step }) => step).join(", ")}`;

/** As long as the steps may take that left something. */
function longestOf({ plan }: RunThing, left: readonly LeftByStep[]): Duration {
  const each = left.map(({ step }) => plan.steps.find(({ name }) => name === step));
  return milliseconds(Math.max(...each.map((planned) => (planned ? timeoutOf(planned) : STEP_DEFAULTS.timeout))));
}

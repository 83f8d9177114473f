import { describeDuration } from "../kernel/duration.ts";
import { waitFor } from "../kernel/outcome.ts";
import { endUnwell } from "./end-unwell.ts";
import type { RunThing } from "./lifecycle.ts";
import { timeoutOf } from "./plan.ts";
import type { LeftOver } from "./run-action.ts";
import type { RunContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";
import { STEP_DEFAULTS } from "./step.ts";
import { AT_ONCE, type Looked, pollAfter } from "./step-work.ts";
import { takeBack } from "./take-back.ts";

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
  const { step } = leftOver;
  const { startedAt, residue } = run.facts;
  const isFirstLook = run.outcome === null;
  if (isFirstLook) log.say(`taking back what step ${step} of the attempt before has left`);
  const remains = await takeBack({ run, ...leftOver }, context, log);
  if (remains?.is === "open") {
    const planned = run.plan.steps.find(({ name }) => name === step);
    const within = planned ? timeoutOf(planned) : STEP_DEFAULTS.timeout;
    const waited = startedAt === null ? 0 : context.clock.now().getTime() - startedAt.getTime();
    const what = `what step ${step} of the attempt before has left is not taken back`;
    if (waited <= within)
      return waitFor(`${what} yet: ${remains.text}`, pollAfter(startedAt, context.clock), {
        effects: log.effects(step),
      });
    const message = `${step}: ${what} within ${describeDuration(within)}: ${remains.text}`;
    const failure = { code: "EXECUTION_FAILED", retryable: true, step } as const;
    return endUnwell(run, "FAILED", context, log, {
      message,
      failure,
      residue: [remains.text],
      takeBackFirst: leftOver,
    });
  }
  if (remains !== null) log.say(`stays behind: ${remains.text}`, "stderr");
  return waitFor(`${step}: taken back`, AT_ONCE, {
    facts: { takeBackFirst: null, ...(remains !== null && { residue: [...new Set([...residue, remains.text])] }) },
    effects: log.effects(step),
  });
}

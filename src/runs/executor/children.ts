import { type Effect, order } from "../../kernel/effects.ts";
import { waitFor } from "../../kernel/outcome.ts";
import type { ChildRun } from "../children/child-run.ts";
import { type RunThing, runLifecycle } from "../model/lifecycle.ts";
import { isActive } from "../model/run.ts";
import type { RunContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";
import { type PassOutcome, pollAfter } from "./step/work.ts";

/** What a run orders of another one. */
export type CancelOrder = { readonly cancel: string; readonly at: string };

/** Those that it waits for. A child that cannot prove how its work ended goes on alone, and keeps its device. */
export const activeChildren = ({ children }: RunThing): readonly ChildRun[] =>
  children.filter(({ phase, isUnproven }) => isActive(phase) && !isUnproven);

const named = (children: readonly ChildRun[]): string =>
  children.length === 1 ? `run ${children[0]?.id}` : `${children.length} runs that it started`;

/** Undefined once all children have ended. */
export function untilChildrenEnd(run: RunThing, context: RunContext): PassOutcome | undefined {
  const active = activeChildren(run);
  if (active.length === 0) return undefined;
  return waitFor(`waits for ${named(active)}`, pollAfter(run.stateSince, context.clock));
}

/**
 * For a run that will end without success: asks its children to end, each once, and waits until they have. Undefined once all have
 * ended. A child undoes what it can, as on any cancel, and so ends in bounded time.
 */
export const stopChildren = (run: RunThing, context: RunContext, log: RunLog, why: string): PassOutcome | undefined =>
  stop(activeChildren(run), run, { context, log, why });

/**
 * A step is entered only after the runs of the steps before it have ended: two runs of one parent would otherwise work on one device
 * at the same time, under the same claim. The runs of a step that has failed are canceled. Undefined once all have ended.
 */
export function endEarlierChildren(run: RunThing, context: RunContext, log: RunLog): PassOutcome | undefined {
  const hasFailed = ({ step, round }: ChildRun) =>
    run.facts.steps.some((visit) => visit.name === step && visit.round === round && visit.state === "FAILED");
  const abandoned = activeChildren(run).filter(hasFailed);
  const why = `step ${abandoned[0]?.step} has failed`;
  return stop(abandoned, run, { context, log, why }) ?? untilChildrenEnd(run, context);
}

function stop(
  active: readonly ChildRun[],
  { stateSince }: RunThing,
  { context, log, why }: { readonly context: RunContext; readonly log: RunLog; readonly why: string },
): PassOutcome | undefined {
  if (active.length === 0) return undefined;
  const toCancel = active.filter(({ isCanceling }) => !isCanceling);
  if (toCancel.length > 0) log.say(`${why}: canceling ${named(toCancel)}`, "stderr");
  const cancel: CancelOrder = { cancel: why, at: context.clock.now().toISOString() };
  const effects = toCancel.map(({ id }): Effect => order(runLifecycle, id, cancel));
  return waitFor(`${why}: waits for ${named(active)}`, pollAfter(stateSince, context.clock), {
    effects: [...log.effects(""), ...effects],
  });
}

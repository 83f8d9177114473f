import { type Effect, order } from "../../kernel/effects.ts";
import { waitFor } from "../../kernel/outcome.ts";
import type { ChildRun } from "../children/child-run.ts";
import { type RunThing, runLifecycle } from "../model/lifecycle.ts";
import { isActive } from "../model/run.ts";
import type { RunContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";
import { type Looked, pollAfter } from "./step/work.ts";

/** A run ends only after the runs that its steps have started. */

/** What a run orders of another one. */
export type CancelOrder = { readonly cancel: string; readonly at: string };

export const activeChildren = ({ children }: RunThing): readonly ChildRun[] =>
  children.filter(({ phase }) => isActive(phase));

const named = (children: readonly ChildRun[]): string =>
  children.length === 1 ? `run ${children[0]?.id}` : `${children.length} runs that it started`;

/** Undefined once all children have ended. */
export function untilChildrenEnd(run: RunThing, context: RunContext): Looked | undefined {
  const active = activeChildren(run);
  if (active.length === 0) return undefined;
  return waitFor(`waits for ${named(active)}`, pollAfter(run.stateSince, context.clock));
}

/**
 * For a run that will end without success: asks its children to end, each once, and waits until they have. Undefined once all have
 * ended. A child undoes what it can, as on any cancel, and so ends in bounded time.
 */
export function stopChildren(run: RunThing, context: RunContext, log: RunLog, why: string): Looked | undefined {
  const active = activeChildren(run);
  if (active.length === 0) return undefined;
  const toCancel = active.filter(({ isCanceling }) => !isCanceling);
  if (toCancel.length > 0) log.say(`${why}: canceling ${named(toCancel)}`, "stderr");
  const cancel: CancelOrder = { cancel: why, at: context.clock.now().toISOString() };
  const effects = toCancel.map(({ id }): Effect => order(runLifecycle, id, cancel));
  return waitFor(`${why}: waits for ${named(active)}`, pollAfter(run.stateSince, context.clock), {
    effects: [...log.effects(""), ...effects],
  });
}

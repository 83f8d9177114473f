import { type Duration, seconds } from "../kernel/duration.ts";
import { messageOf } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/lifecycle.ts";
import type { RunThing } from "./lifecycle.ts";
import { type RunContext, stepContext } from "./run-context.ts";
import type { RunLog } from "./run-log.ts";

const UNDO_WITHIN: Duration = seconds(8);

export interface Begun {
  readonly run: RunThing;
  /** By its name in the run's plan. */
  readonly step: string;
  readonly evidence: JsonObject;
}

/** What a canceled step has done for good, although it was taken back; null when nothing is left of it. */
export function staysAnyway({ run, step: name }: Begun, { steps }: RunContext): string | null {
  const step = run.plan.steps.find((one) => one.name === name);
  const kind = step && steps.get(step.kind);
  return step && kind?.undoIsPartial && kind.residue ? `${name}: ${kind.residue(step.payload)}` : null;
}

/**
 * Takes back what a step began, once and in bounded time. Returns what stays behind, for people; null when nothing does. Doing it
 * again is harmless, so that a crash in the middle of it costs nothing.
 */
export async function takeBack(
  { run, step: name, evidence }: Begun,
  context: RunContext,
  log: RunLog,
): Promise<string | null> {
  const step = run.plan.steps.find((one) => one.name === name);
  const kind = step && context.steps.get(step.kind);
  if (!step || !kind) return null;
  const left = kind.residue?.(step.payload);
  if (!kind.undo) return left === undefined ? null : `${name}: ${left}`;
  try {
    const signal = AbortSignal.any([context.call.signal, AbortSignal.timeout(UNDO_WITHIN)]);
    const base = stepContext(run, step, { ...context, call: { ...context.call, signal } }, log);
    await kind.undo({ ...base, evidence });
    log.say(`step ${name}: what it had begun was taken back`);
    return null;
  } catch (error) {
    return `${name}: ${left ?? "may have left something behind"} (undoing it failed: ${messageOf(error)})`;
  }
}

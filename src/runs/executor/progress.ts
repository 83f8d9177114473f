import { type Effect, observe } from "../../kernel/effects.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Outcome } from "../../kernel/outcome.ts";
import type { ObservedCondition } from "../../lifecycles/machine/conditions.ts";
import { type RunThing, stepJson } from "../model/lifecycle.ts";
import type { StepStatus } from "../model/run.ts";
import type { ProbeReport } from "../model/step.ts";
import { isSameVisit } from "./step/visit.ts";

/** How far one pass has come: what it has proven and is not on record yet. */
export interface Progress {
  /** With its target, as both will be once the pass is written. */
  readonly run: RunThing;
  /** The last step that was proven; null when the pass has nothing to write yet. */
  readonly proven: string | null;
  /** What the steps said, and what they did to other things. */
  readonly done: readonly Effect[];
  readonly seen: { readonly facts: JsonObject; readonly conditions: readonly JsonObject[] };
}

/** A step came to be proven; what comes next may be looked at before it is written. */
export interface Proven {
  readonly type: "proven";
  readonly visit: StepStatus;
  readonly report: ProbeReport;
  readonly said: readonly Effect[];
}

export const startOf = (run: RunThing): Progress => ({
  run,
  proven: null,
  done: [],
  seen: { facts: {}, conditions: [] },
});

/** What a step tells of the target holds for the steps after it: another host key, another address. */
export function withProof({ run, done, seen }: Progress, { visit, report, said: more }: Proven): Progress {
  const { facts = {}, conditions = [], effects = [] } = report;
  const { thing } = run.target;
  const target = { ...run.target, thing: thing && { ...thing, facts: { ...thing.facts, ...facts } } };
  return {
    run: { ...run, target, facts: { ...run.facts, steps: stepsWith(run, visit) } },
    proven: visit.name,
    done: [...done, ...more, ...effects],
    seen: {
      facts: { ...seen.facts, ...facts },
      conditions: [...seen.conditions, ...seenAt(conditions, visit.finishedAt)],
    },
  };
}

/** With the time by the clock that all replicas share: looks from outside are held against it. */
export const seenAt = (conditions: readonly ObservedCondition[], at: Date | null): JsonObject[] =>
  conditions.map((condition) => ({ ...condition, ...(at && { at: at.toISOString() }) }));

/** In its place, which is the plan's: one that is done again may have others after it that wait for it. */
export const stepsWith = ({ facts: { steps } }: RunThing, visit: StepStatus): StepStatus[] =>
  steps.some((one) => isSameVisit(one, visit))
    ? steps.map((one) => (isSameVisit(one, visit) ? visit : one))
    : [...steps, visit];

/** What the pass comes to, and with it, in one commit, all that it has proven before. */
export function writtenWith<E extends string>({ run, proven, done, seen }: Progress, last: Outcome<E>): Outcome<E> {
  if (proven === null) return last;
  const { facts = {} } = last;
  return {
    ...last,
    facts: { steps: run.facts.steps.map(stepJson), ...facts },
    effects: [...done, ...tellTarget(run, seen), ...(last.effects ?? [])],
  };
}

function tellTarget(
  { target: { kind, id } }: RunThing,
  { facts, conditions: observed }: Progress["seen"],
): readonly Effect[] {
  const isNews = Object.keys(facts).length > 0 || observed.length > 0;
  return isNews ? [observe({ kind }, id, facts, observed)] : [];
}

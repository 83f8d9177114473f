import type { Thing } from "../../../kernel/lifecycle.ts";
import { isJsonObject, type Json } from "../../../kernel/lifecycle.ts";
import type { RunThing } from "../../model/lifecycle.ts";
import type { StepState } from "../../model/run.ts";
import type { RunOn, StepProgress } from "../../targets/target-kind.ts";
import type { RunContext } from "../run-context.ts";
import type { PassOutcome } from "./work.ts";

/** The pass, with what it means for the target that the run has come further. It commits with the pass, before the run's end. */
export function withProgress(run: RunThing, { target }: RunContext, outcome: PassOutcome): PassOutcome {
  const steps = outcome.facts?.steps;
  if (!target.whenProgressed || !Array.isArray(steps) || run.target.thing === null) return outcome;
  const before = run.facts.steps.map(({ name, round, state, actingAt, actedAt }) => ({
    name,
    round,
    state,
    isBegun: actingAt !== null || actedAt !== null,
  }));
  const effects = target.whenProgressed(run as RunOn<Thing>, before, (steps as readonly Json[]).flatMap(progressOf));
  return effects.length === 0 ? outcome : { ...outcome, effects: [...effects, ...(outcome.effects ?? [])] };
}

/** A visit as it is kept: what says nothing is left out. */
function progressOf(visit: Json): StepProgress[] {
  if (!isJsonObject(visit)) return [];
  const { name, round = 1, state, actingAt, actedAt } = visit;
  const isBegun = actingAt !== undefined || actedAt !== undefined;
  return [{ name: String(name), round: Number(round), state: state as StepState, isBegun }];
}

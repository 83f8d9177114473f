import type { Move } from "../../kernel/decide.ts";
import type { Effect } from "../../kernel/effects.ts";
import type { JsonObject, StoredOutcome, Thing } from "../../kernel/lifecycle.ts";
import type { Observed, ThingKey, ThingStore } from "./things.ts";

/** What one look at a thing leads to. Move, facts, outcome and effects are written together or not at all. */
export interface Unit {
  readonly thing: Thing;
  readonly kind: string;
  readonly move?: Move;
  /** A patch of the thing's facts, already reduced to what differs. */
  readonly facts?: JsonObject;
  /** What is new by what others saw of it; told by an entry of its own, after the unit's. */
  readonly observed?: Observed;
  /** Undefined leaves it as it is; null clears it. */
  readonly outcome?: StoredOutcome | null;
  readonly effects?: readonly Effect[];
  readonly actor: string;
  readonly address?: string | null;
  /** The lease under which it was worked out; absent when the caller's own transaction holds the locks. */
  readonly lease?: { readonly epoch: number };
}

export const keyOf = (unit: Unit): ThingKey => ({ kind: unit.kind, id: unit.thing.id });

export const outcomeAfter = (unit: Unit): StoredOutcome | null =>
  unit.outcome !== undefined ? unit.outcome : unit.move ? null : unit.thing.outcome;

/**
 * The thing once the unit is written, where that is known without loading it. Should others have changed the thing itself, its basis is
 * wrong as well, and nothing that is worked out from it is written. What they changed of things that are loaded with it, such as a
 * run's machine, is seen by the next look that loads it: that of the next lease at the latest.
 */
export function thingAfter({ factsWith }: ThingStore, unit: Unit): Thing | undefined {
  const { thing, move, facts, observed, effects = [] } = unit;
  const hasMoved = move !== undefined && (move.gone || move.to !== move.from);
  // Things are loaded with others that they work on: what changes those as well is not known here.
  if (!factsWith || hasMoved || observed || effects.some(({ type }) => type !== "log")) return undefined;
  return {
    ...thing,
    ...(move && { state: { ...move.carried, name: move.to } }),
    facts: factsWith(thing, { ...facts, ...move?.facts }),
    outcome: outcomeAfter(unit),
    version: thing.version + 1,
    basis: thing.basis + 1,
  };
}

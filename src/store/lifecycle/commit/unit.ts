import { changesState, type Move } from "../../../kernel/decide.ts";
import type { Effect } from "../../../kernel/effects.ts";
import type { JsonObject, StoredOutcome, Thing } from "../../../kernel/lifecycle.ts";
import type { Observed, ThingKey, ThingStore } from "../things.ts";

/** A change of one thing: a row of its table, what was learnt about it, or both. It has one entry in the journal. */
export interface Change {
  /** As it is before the change. */
  readonly thing: Thing;
  readonly move?: Move;
  /** A patch of the thing's facts, already reduced to what differs. */
  readonly facts?: JsonObject;
  /** What is new by what others saw of it; told by an entry of its own, after the change's. */
  readonly observed?: Observed;
}

/** What one pass of a thing leads to. Move, facts, outcome and effects are written together or not at all. */
export interface Unit extends Change {
  readonly kind: string;
  /** Further rows of the same thing, in this order. */
  readonly further?: readonly Change[];
  /** Undefined leaves it as it is; null clears it. */
  readonly outcome?: StoredOutcome | null;
  readonly effects?: readonly Effect[];
  readonly actor: string;
  readonly address?: string | null;
  /** The lease under which it was worked out; absent when the caller's own transaction holds the locks. */
  readonly lease?: { readonly epoch: number };
}

export const keyOf = (unit: Unit): ThingKey => ({ kind: unit.kind, id: unit.thing.id });

export const changesOf = (unit: Unit): readonly Change[] => (unit.further ? [unit, ...unit.further] : [unit]);

/** The row by which the thing comes to the state that it is in once the unit is written. */
export const lastMoveOf = ({ move, further = [] }: Unit): Move | undefined =>
  further.findLast((change) => change.move !== undefined)?.move ?? move;

/** The thing's row goes with the unit. */
export const isGone = (unit: Unit): boolean => lastMoveOf(unit)?.gone === true;

export const outcomeAfter = (unit: Unit): StoredOutcome | null =>
  unit.outcome !== undefined ? unit.outcome : lastMoveOf(unit) ? null : unit.thing.outcome;

/**
 * The thing as the next row of the same commit finds it. What is loaded with it from elsewhere stays as it was: a commit knows only
 * what it changes itself.
 */
export function afterChange(
  { factsWith = mergeFacts }: { readonly factsWith?: ThingStore["factsWith"] },
  { thing, move, facts }: Change,
): Thing {
  const patch = { ...facts, ...move?.facts };
  const hasFacts = Object.keys(patch).length > 0;
  return {
    ...thing,
    ...(move && { ...requestsAfter(thing, move), ...stateAfter(thing, move) }),
    ...(hasFacts && { facts: factsWith(thing, patch) }),
    version: thing.version + 1,
    basis: thing.basis + 1,
  };
}

/** The thing with all rows of the unit. */
export const afterUnit = (store: ThingStore, unit: Unit): Thing => afterChange(store, changesOf(unit).at(-1) ?? unit);

/** For facts that are kept as they are used: plain JSON. */
const mergeFacts = ({ facts }: Thing, patch: JsonObject): object => ({ ...facts, ...patch });

const stateAfter = (thing: Thing, move: Move): Pick<Thing, "state" | "stateVersion" | "outcome"> => ({
  state: { ...move.carried, name: move.to },
  stateVersion: thing.stateVersion + (changesState(thing, move) ? 1 : 0),
  outcome: null,
});

/** Requests that the move ends are pending no more; a newer one in the same field is. */
function requestsAfter(thing: Thing, { ends, withdraws = [], supersedes = [], expires = [] }: Move): object {
  const pending = thing as unknown as Readonly<Record<string, { readonly id?: unknown } | null | undefined>>;
  const ended = ends.filter(({ field, request }) => pending[field]?.id === request.id).map(({ field }) => field);
  return Object.fromEntries([...ended, ...withdraws, ...supersedes, ...expires].map((field) => [field, null]));
}

/**
 * The thing once the unit is written, where that is known without loading it. Should others have changed the thing itself, its basis is
 * wrong as well, and nothing that is worked out from it is written. What they changed of things that are loaded with it, such as a
 * run's machine, is seen by the next pass that loads it: that of the next lease at the latest.
 *
 * @param stateSince As the database has it once the unit is written.
 */
export function thingAfter(store: ThingStore, unit: Unit, stateSince?: Date): Thing | undefined {
  const { thing, move, observed, effects = [], further } = unit;
  // Things are loaded with others that they work on: what changes those as well is not known here.
  if (observed || further || effects.some(({ type }) => type !== "log")) return undefined;
  const hasMoved = move !== undefined && (move.gone || changesState(thing, move));
  const after = { ...afterChange(store, unit), outcome: outcomeAfter(unit) };
  if (!hasMoved) return store.goesOnUnloaded ? after : undefined;
  const isKnown = !move.gone && store.entersUnloaded?.includes(move.to) === true;
  return isKnown && stateSince ? { ...after, stateSince } : undefined;
}

import { isDeepStrictEqual } from "node:util";
import { follow } from "../../../kernel/decide.ts";
import type {
  AlertEffect,
  CreateEffect,
  Effect,
  LogEffect,
  MoveEffect,
  ObserveEffect,
  RequestEffect,
  RequireEffect,
} from "../../../kernel/effects.ts";
import type { JsonObject, Thing } from "../../../kernel/lifecycle.ts";
import type { Transaction } from "../../postgres/database.ts";
import { afterChange, type Change, keyOf, type Unit } from "../commit/unit.ts";
import type { PlacedOrder } from "../orders.ts";
import { nameOf, storeOf, type ThingKey, type ThingStore, type ThingStores } from "../things.ts";
import { findRefused, ordersOf } from "./effect-orders.ts";

/** A unit with what its effects come to, worked out against the things as they are under the lock. */
export interface EffectPlan {
  /** With the rows that its effects add to its own thing. */
  readonly unit: Unit;
  /** What becomes of other things, each of them once. */
  readonly changes: readonly Unit[];
  readonly creates: readonly CreateEffect[];
  readonly logs: readonly LogEffect[];
  readonly requests: readonly RequestEffect[];
  readonly orders: readonly PlacedOrder[];
  readonly alerts: readonly AlertEffect[];
  /** Why its effects cannot be, as things are now. */
  readonly impossible?: Error;
}

/** Units that rely on a thing which is not there any more, or not in the state that they rely on. They are dropped, not failed: a new pass finds out what now holds. */
export async function findUnmet(tx: Transaction, stores: ThingStores, units: readonly Unit[]): Promise<Unit[]> {
  const required = units.flatMap((unit) => requiredBy(unit).map((effect) => ({ unit, effect })));
  const unmet: Unit[] = [];
  for (const ofKind of Map.groupBy(required, ({ effect }) => `${effect.kind} ${effect.notDeleted ?? false}`).values()) {
    const [{ kind, notDeleted }] = ofKind.map(({ effect }) => effect) as [RequireEffect];
    const rows = await tx.query<{ id: string; state: string }>(
      `select id, state from ${storeOf(stores, kind).table} where id = any($1) ${notDeleted ? "and deleted_at is null" : ""}`,
      [ofKind.map(({ effect }) => effect.id)],
    );
    const states = new Map(rows.map(({ id, state }) => [id, state]));
    const isMet = ({ id, states: wanted }: RequireEffect) => {
      const state = states.get(id);
      return state !== undefined && (wanted?.includes(state) ?? true);
    };
    unmet.push(...ofKind.filter(({ effect }) => !isMet(effect)).map(({ unit }) => unit));
  }
  return [...unmet, ...(await findRefused(tx, stores, units))];
}

const requiredBy = ({ effects = [] }: Unit): RequireEffect[] => effects.filter((effect) => effect.type === "require");

type ChangeEffect = MoveEffect | ObserveEffect;
const isChange = (effect: Effect): effect is ChangeEffect => effect.type === "move" || effect.type === "observe";

/**
 * An effect that cannot be makes its unit fail as a whole, alone, and says why. It does so only once the unit has the claims that it
 * needs: as long as another works on the thing, that one's doing may be all that is in the way.
 */
export async function planEffects(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
): Promise<Map<Unit, EffectPlan>> {
  const effective = units.flatMap((unit) => {
    const { effects = [] } = unit;
    return effects.length === 0 ? [] : [{ unit, effects }];
  });
  const others = await loadChanged(
    tx,
    stores,
    effective.flatMap(({ unit, effects }) => effects.filter(isChange).filter((effect) => !isOfItself(unit, effect))),
  );
  return new Map(
    effective.map(({ unit, effects }) => [
      unit,
      {
        ...tryToPlanChanges(stores, unit, effects.filter(isChange), others),
        creates: effects.filter((effect) => effect.type === "create"),
        logs: effects.filter((effect) => effect.type === "log"),
        requests: effects.filter((effect) => effect.type === "request"),
        orders: ordersOf(unit),
        alerts: effects.filter((effect) => effect.type === "alert"),
      },
    ]),
  );
}

const isOfItself = (unit: Unit, { kind, id }: ThingKey): boolean => kind === unit.kind && id === unit.thing.id;

type Seen = ReadonlyMap<string, Thing | { readonly unreadable: string }>;

/** The things that effects change, as they are under the lock: one query a kind. */
async function loadChanged(tx: Transaction, stores: ThingStores, effects: readonly ChangeEffect[]): Promise<Seen> {
  const seen = new Map<string, Thing | { readonly unreadable: string }>();
  for (const [kind, ofKind] of Map.groupBy(effects, (effect) => effect.kind)) {
    const { things, unreadable } = await storeOf(stores, kind).load(tx, [...new Set(ofKind.map(({ id }) => id))]);
    for (const thing of things) seen.set(nameOf({ kind, id: thing.id }), thing);
    for (const { id, error } of unreadable) seen.set(nameOf({ kind, id }), { unreadable: error });
  }
  return seen;
}

function tryToPlanChanges(
  ...planned: Parameters<typeof planChanges>
): Pick<EffectPlan, "unit" | "changes" | "impossible"> {
  try {
    return planChanges(...planned);
  } catch (error) {
    const [, unit] = planned;
    return { unit, changes: [], impossible: error instanceof Error ? error : new Error(String(error)) };
  }
}

function planChanges(
  stores: ThingStores,
  unit: Unit,
  effects: readonly ChangeEffect[],
  others: Seen,
): Pick<EffectPlan, "unit" | "changes"> {
  const byThing = Map.groupBy(effects, nameOf);
  const own = byThing.get(nameOf(keyOf(unit))) ?? [];
  byThing.delete(nameOf(keyOf(unit)));
  const actor = nameIn(unit);
  const changes = [...byThing].flatMap(([name, ofThing]): Unit[] => {
    const [{ kind }] = ofThing as [ChangeEffect, ...ChangeEffect[]];
    const thing = foundIn(others, name, ofThing);
    const [first, ...further] = thing ? fold(storeOf(stores, kind), [{ thing }], ofThing) : [];
    return first ? [{ ...first, kind, actor, ...(further.length > 0 && { further }) }] : [];
  });
  if (own.length === 0) return { unit, changes };
  const [first, ...further] = fold(storeOf(stores, unit.kind), [unit, ...(unit.further ?? [])], own);
  return { unit: { ...unit, ...first, ...(further.length > 0 && { further }) }, changes };
}

const nameIn = ({ kind, thing }: Unit): string => `${kind} ${thing.id}`;

/** Undefined when there is no such thing, and none of the effects insists on it. */
function foundIn(seen: Seen, name: string, effects: readonly ChangeEffect[]): Thing | undefined {
  const thing = seen.get(name);
  if (thing !== undefined && !("unreadable" in thing)) return thing;
  const insisting = effects.find((effect) => effect.type === "observe" || effect.ifPossible !== true);
  if (thing === undefined && insisting === undefined) return undefined;
  const { kind, id, ...effect } = insisting ?? (effects[0] as ChangeEffect);
  const why = thing ? `cannot be read (${thing.unreadable})` : "does not exist";
  throw new Error(`${kind} ${id} ${why}, so ${effect.type === "move" ? effect.cause : "what was seen"} cannot move it`);
}

/**
 * What effects on one thing come to, in their order: each row is judged by the thing as the rows before it have left it. What was
 * learnt joins the row beside it, so that one event tells both; only rows are told one by one.
 */
function fold(store: ThingStore, start: readonly Change[], effects: readonly ChangeEffect[]): Change[] {
  const before = start.slice(0, -1);
  let last = start.at(-1) as Change;
  let now = afterChange(store, last);
  const put = (more: Omit<Change, "thing">) => {
    if (joins(last, more)) last = { ...last, ...more, facts: { ...last.facts, ...more.facts } };
    else {
      before.push(last);
      last = { thing: now, ...more };
    }
    now = afterChange(store, { thing: now, ...more });
  };
  for (const effect of effects) {
    const facts = changedIn(now, effect.facts ?? {});
    if (effect.type === "observe") put({ facts });
    else {
      const { cause, message, data } = effect;
      const move = follow(store.lifecycle, now, { owner: "other", name: cause, message, data });
      if (move) put({ facts, move });
      else if (!effect.ifPossible)
        throw new Error(`${effect.kind} ${effect.id} is ${now.state.name}, where ${cause} leads nowhere`);
    }
  }
  const sights = effects.flatMap(({ observed = [] }) => observed);
  const observed = sights.length > 0 ? store.observe?.(now, sights) : undefined;
  return [...before, { ...last, ...(observed && { observed }) }].filter(changesAnything);
}

const changesAnything = ({ move, observed, facts = {} }: Change): boolean =>
  move !== undefined || observed !== undefined || Object.keys(facts).length > 0;

/** A row's own facts come after those beside it: what was learnt later and contradicts them has an event of its own. */
const joins = ({ move }: Change, more: Omit<Change, "thing">): boolean =>
  move === undefined ||
  (more.move === undefined && Object.keys(more.facts ?? {}).every((fact) => !(fact in move.facts)));

/** What a run proves again is often known already: written once more, it would look like a change. */
const changedIn = ({ facts }: Thing, patch: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(patch).filter(([name, now]) => !isDeepStrictEqual((facts as JsonObject)[name], now)),
  );

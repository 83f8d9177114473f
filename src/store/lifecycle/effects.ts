import { isDeepStrictEqual } from "node:util";
import { follow } from "../../kernel/decide.ts";
import type {
  CreateEffect,
  Effect,
  LogEffect,
  MoveEffect,
  ObserveEffect,
  OrderEffect,
  RequireEffect,
} from "../../kernel/effects.ts";
import type { JsonObject, Thing } from "../../kernel/lifecycle.ts";
import type { Transaction } from "../postgres/database.ts";
import { create } from "./create.ts";
import type { OrderDesk, PlacedOrder } from "./orders.ts";
import { nameOf, storeOf, type ThingKey, type ThingStores } from "./things.ts";
import { keyOf, type Unit } from "./unit.ts";
import type { CommitUnits, UnitResult } from "./unit-result.ts";
import * as work from "./work.ts";

/** The effects of one unit, worked out against the things as they are under the lock. */
export interface EffectPlan {
  readonly actor: string;
  readonly creates: readonly CreateEffect[];
  readonly moves: readonly Unit[];
  readonly wakes: readonly ThingKey[];
  readonly logs: readonly LogEffect[];
  readonly orders: readonly PlacedOrder[];
}

export const lockedByEffects = (effects: readonly Effect[] = []): ThingKey[] =>
  effects.map(({ kind, id }) => ({ kind, id }));

/** Units that rely on a thing which is not there any more. They are dropped, not failed: a new look finds out what now holds. */
export async function findUnmet(tx: Transaction, stores: ThingStores, units: readonly Unit[]): Promise<Unit[]> {
  const required = units.flatMap((unit) => requiredBy(unit).map((effect) => ({ unit, effect })));
  const unmet: Unit[] = [];
  for (const ofKind of Map.groupBy(required, ({ effect }) => `${effect.kind} ${effect.notDeleted ?? false}`).values()) {
    const [{ kind, notDeleted }] = ofKind.map(({ effect }) => effect) as [RequireEffect];
    const rows = await tx.query<{ id: string }>(
      `select id from ${storeOf(stores, kind).table} where id = any($1) ${notDeleted ? "and deleted_at is null" : ""}`,
      [ofKind.map(({ effect }) => effect.id)],
    );
    const there = new Set(rows.map(({ id }) => id));
    unmet.push(...ofKind.filter(({ effect }) => !there.has(effect.id)).map(({ unit }) => unit));
  }
  return [...unmet, ...(await findRefused(tx, stores, units))];
}

/** Units that order what cannot be taken any more: it could when they were worked out. */
async function findRefused(tx: Transaction, stores: ThingStores, units: readonly Unit[]): Promise<Unit[]> {
  const ordered = units.flatMap((unit) => ordersOf(unit).map((placed) => ({ unit, placed })));
  const refused: Unit[] = [];
  for (const [kind, ofKind] of Map.groupBy(ordered, ({ placed }) => placed.kind)) {
    const reasons = await deskOf(stores, kind).refusals(
      tx,
      ofKind.map(({ placed }) => placed),
    );
    refused.push(...ofKind.filter(({ placed }) => reasons.has(placed)).map(({ unit }) => unit));
  }
  return refused;
}

const ordersOf = ({ kind: by, thing, effects = [] }: Unit): PlacedOrder[] =>
  effects
    .filter((effect): effect is OrderEffect => effect.type === "order")
    .map(({ kind, id, order }) => ({ kind, id, order, by: `${by} ${thing.id}` }));

function deskOf(stores: ThingStores, kind: string): OrderDesk {
  const desk = storeOf(stores, kind).orders;
  if (!desk) throw new Error(`nothing can be ordered of things of kind ${kind}`);
  return desk;
}

const requiredBy = ({ effects = [] }: Unit): RequireEffect[] => effects.filter((effect) => effect.type === "require");

type ChangeEffect = MoveEffect | ObserveEffect;
const isChange = (effect: Effect): effect is ChangeEffect => effect.type === "move" || effect.type === "observe";

/** Throws when an effect cannot be: the unit then fails as a whole, alone, and says why. */
export async function planEffects(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
  dropped: ReadonlyMap<Unit, UnitResult>,
): Promise<Map<Unit, EffectPlan>> {
  const effective = units.flatMap((unit) => {
    const { effects = [] } = unit;
    return effects.length === 0 || dropped.has(unit) ? [] : [{ unit, effects }];
  });
  const changed = await loadChanged(
    tx,
    stores,
    effective.flatMap(({ effects }) => effects.filter(isChange)),
  );
  return new Map(
    effective.map(({ unit, effects }) => [
      unit,
      {
        actor: unit.actor,
        creates: effects.filter((effect) => effect.type === "create"),
        moves: effects.filter(isChange).flatMap((effect) => planChange(stores, unit, effect, changed)),
        wakes: effects.filter((effect) => effect.type === "wake"),
        logs: effects.filter((effect) => effect.type === "log"),
        orders: ordersOf(unit),
      },
    ]),
  );
}

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

/** `commit` writes the moves: the writer of states applies effects, so that it is handed in and not imported. */
export async function applyEffects(
  tx: Transaction,
  stores: ThingStores,
  { plans, commit }: { readonly plans: readonly EffectPlan[]; readonly commit: CommitUnits },
): Promise<void> {
  for (const plan of plans) {
    for (const { kind, id, row, mustBeNew } of plan.creates) {
      const isNew = await create(tx, storeOf(stores, kind), { id, row, actor: plan.actor, ifMissing: true });
      if (mustBeNew && !isNew) throw new Error(`${kind} ${id} exists already, and cannot be made a second time`);
    }
  }
  await appendLogs(
    tx,
    stores,
    plans.flatMap(({ logs }) => logs),
  );
  const orders = plans.flatMap((plan) => plan.orders);
  for (const [kind, ofKind] of Map.groupBy(orders, (placed) => placed.kind))
    await deskOf(stores, kind).place(tx, { stores, commit, orders: ofKind });
  const moves = plans.flatMap((plan) => plan.moves);
  if (moves.length > 0) refuseUnwritten(moves, await commit(tx, stores, moves));
  await work.wake(tx, [
    ...moves.filter((change) => mayReact(stores, change)).map(keyOf),
    ...plans.flatMap((plan) => plan.wakes),
  ]);
}

/** What one thing's steps said at several places is one log. */
async function appendLogs(tx: Transaction, stores: ThingStores, logs: readonly LogEffect[]): Promise<void> {
  for (const [kind, ofKind] of Map.groupBy(logs, (log) => log.kind)) {
    const byThing = [...Map.groupBy(ofKind, ({ id }) => id)];
    await storeOf(stores, kind).appendLogs?.(
      tx,
      byThing.map(([id, ofThing]) => ({ id, lines: ofThing.flatMap(({ lines }) => lines) })),
    );
  }
}

/** Whether looking at the thing could lead to anything. */
function mayReact(stores: ThingStores, { kind, move }: Unit): boolean {
  const { lifecycle, isPassive } = storeOf(stores, kind);
  return isPassive !== true || (move !== undefined && lifecycle.states[move.to]?.rest !== true);
}

/** An effect that is not written takes its unit, and the transaction, with it: there is no half of a unit. */
function refuseUnwritten(moves: readonly Unit[], results: readonly UnitResult[]): void {
  for (const [index, { kind, thing, move }] of moves.entries()) {
    const result = results[index];
    if (result?.type === "committed") continue;
    const why =
      result?.type === "waiting"
        ? result.for.inTheWay
            .map(({ holder, reason }) => `${holder.kind} ${holder.id} (${reason}) works on it`)
            .join("; ")
        : "it has changed meanwhile";
    throw new Error(`${move?.trigger ?? "what was seen"} cannot move ${kind} ${thing.id}: ${why}`);
  }
}

/** What a run proves anew is often known already: told once more, it would look like a change. */
const changedIn = ({ facts }: Thing, patch: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(patch).filter(([name, now]) => !isDeepStrictEqual((facts as JsonObject)[name], now)),
  );

/** What a move or an observation makes of the other thing as it is now, under the lock. */
function planChange(stores: ThingStores, unit: Unit, effect: ChangeEffect, seen: Seen): Unit[] {
  const store = storeOf(stores, effect.kind);
  const thing = seen.get(nameOf(effect));
  const what = effect.type === "move" ? effect.cause : "what was seen";
  const ifPossible = effect.type === "move" && effect.ifPossible === true;
  if (thing === undefined && ifPossible) return [];
  if (thing === undefined || "unreadable" in thing) {
    const why = thing ? `cannot be read (${thing.unreadable})` : "does not exist";
    throw new Error(`${effect.kind} ${effect.id} ${why}, so ${what} cannot move it`);
  }
  const { observed: seenNow = [] } = effect;
  const facts = changedIn(thing, effect.facts ?? {});
  const observed = seenNow.length > 0 ? store.observe?.(thing, seenNow) : undefined;
  const seenOnly = { thing, kind: effect.kind, actor: `${unit.kind} ${unit.thing.id}`, ...(observed && { observed }) };
  if (effect.type === "observe") return observed || Object.keys(facts).length > 0 ? [{ ...seenOnly, facts }] : [];
  const { cause, message, data } = effect;
  const move = follow(store.lifecycle, thing, { owner: "other", name: cause, message, data });
  if (move) return [{ ...seenOnly, facts, move }];
  if (ifPossible) return observed ? [seenOnly] : [];
  throw new Error(`${effect.kind} ${effect.id} is ${thing.state.name}, where ${cause} leads nowhere`);
}

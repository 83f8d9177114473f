import { follow } from "../kernel/decide.ts";
import type { Effect } from "../kernel/outcome.ts";
import { create } from "./create.ts";
import type { Transaction } from "./database.ts";
import { storeOf, type ThingKey, type ThingStores } from "./things.ts";
import { commitUnits, type Unit, type UnitResult } from "./transitions.ts";
import * as work from "./work.ts";

/** The effects of one unit, worked out against the things as they are under the lock. */
export interface EffectPlan {
  readonly actor: string;
  /** The thing whose outcome this is: named in the history of those that it changes. */
  readonly causer: string;
  readonly creates: readonly Extract<Effect, { type: "create" }>[];
  readonly moves: readonly Unit[];
  readonly wakes: readonly ThingKey[];
  readonly logs: readonly Extract<Effect, { type: "log" }>[];
  readonly observations: readonly Extract<Effect, { type: "move" | "observe" }>[];
}

export const lockedByEffects = (effects: readonly Effect[] = []): ThingKey[] =>
  effects.map(({ kind, id }) => ({ kind, id }));

/** Units that rely on a thing which is not there any more. They are dropped, not failed: a new look finds out what now holds. */
export async function findUnmet(tx: Transaction, stores: ThingStores, units: readonly Unit[]): Promise<Unit[]> {
  const required = units.flatMap((unit) => requiredBy(unit).map((effect) => ({ unit, effect })));
  const unmet: Unit[] = [];
  for (const ofKind of Map.groupBy(required, ({ effect }) => `${effect.kind} ${effect.notDeleted ?? false}`).values()) {
    const [{ kind, notDeleted }] = ofKind.map(({ effect }) => effect) as [Requirement];
    const rows = await tx.query<{ id: string }>(
      `select id from ${storeOf(stores, kind).table} where id = any($1) ${notDeleted ? "and deleted_at is null" : ""}`,
      [ofKind.map(({ effect }) => effect.id)],
    );
    const there = new Set(rows.map(({ id }) => id));
    unmet.push(...ofKind.filter(({ effect }) => !there.has(effect.id)).map(({ unit }) => unit));
  }
  return unmet;
}

type Requirement = Extract<Effect, { type: "require" }>;
const requiredBy = ({ effects = [] }: Unit): Requirement[] => effects.filter((effect) => effect.type === "require");

/** Throws when an effect cannot be: the unit then fails as a whole, alone, and says why. */
export async function planEffects(
  tx: Transaction,
  stores: ThingStores,
  units: readonly Unit[],
  dropped: ReadonlyMap<Unit, UnitResult>,
): Promise<Map<Unit, EffectPlan>> {
  const plans = new Map<Unit, EffectPlan>();
  for (const unit of units) {
    if (!unit.effects || unit.effects.length === 0 || dropped.has(unit)) continue;
    const moves: Unit[] = [];
    for (const effect of unit.effects)
      if (effect.type === "move" || effect.type === "observe") moves.push(await planChange(tx, stores, unit, effect));
    plans.set(unit, {
      actor: unit.actor,
      causer: `${unit.kind} ${unit.thing.id}`,
      creates: unit.effects.filter((effect) => effect.type === "create"),
      moves,
      wakes: unit.effects.filter((effect) => effect.type === "wake"),
      logs: unit.effects.filter((effect) => effect.type === "log"),
      observations: unit.effects.filter((effect) => effect.type === "move" || effect.type === "observe"),
    });
  }
  return plans;
}

export async function applyEffects(tx: Transaction, stores: ThingStores, plans: readonly EffectPlan[]): Promise<void> {
  for (const plan of plans) {
    for (const { kind, id, row, mustBeNew } of plan.creates) {
      const isNew = await create(tx, storeOf(stores, kind), { id, row, actor: plan.actor, ifMissing: true });
      if (mustBeNew && !isNew) throw new Error(`${kind} ${id} exists already, and cannot be made a second time`);
    }
  }
  for (const { kind, id, lines } of plans.flatMap(({ logs }) => logs)) {
    await storeOf(stores, kind).appendLog?.(tx, id, lines);
  }
  const moves = plans.flatMap((plan) => plan.moves);
  await moveAll(tx, stores, moves);
  for (const { causer, observations } of plans) {
    for (const { kind, id, observed = [] } of observations) {
      if (observed.length > 0) await storeOf(stores, kind).observe?.(tx, id, observed, causer);
    }
  }
  await work.wake(tx, [
    ...moves.map((move) => ({ kind: move.kind, id: move.thing.id })),
    ...plans.flatMap((plan) => plan.wakes),
  ]);
}

/** An effect that is not written takes its unit, and the transaction, with it: there is no half of a unit. */
async function moveAll(tx: Transaction, stores: ThingStores, moves: readonly Unit[]): Promise<void> {
  if (moves.length === 0) return;
  const results = await commitUnits(tx, stores, moves);
  for (const [index, { kind, thing, move }] of moves.entries()) {
    const result = results[index];
    if (result?.type === "committed") continue;
    const why =
      result?.type === "waiting"
        ? `${result.for.holder.kind} ${result.for.holder.id} (${result.for.reason}) works on it`
        : "it has changed meanwhile";
    throw new Error(`${move?.trigger ?? "what was seen"} cannot move ${kind} ${thing.id}: ${why}`);
  }
}

/** What a move or an observation makes of the other thing as it is now, under the lock. */
async function planChange(
  tx: Transaction,
  stores: ThingStores,
  unit: Unit,
  effect: Extract<Effect, { type: "move" | "observe" }>,
): Promise<Unit> {
  const store = storeOf(stores, effect.kind);
  const { things, unreadable } = await store.load(tx, [effect.id]);
  const [thing] = things;
  const what = effect.type === "move" ? effect.cause : "what was seen";
  if (!thing) {
    const why = unreadable[0] ? `cannot be read (${unreadable[0].error})` : "does not exist";
    throw new Error(`${effect.kind} ${effect.id} ${why}, so ${what} cannot move it`);
  }
  const facts = effect.facts ?? {};
  const change = { thing, kind: effect.kind, facts, actor: `${unit.kind} ${unit.thing.id}` };
  if (effect.type === "observe") return change;
  const { cause, message, data } = effect;
  const move = follow(store.lifecycle, thing, { owner: "other", name: cause, message, data });
  if (!move) throw new Error(`${effect.kind} ${effect.id} is ${thing.state.name}, where ${cause} leads nowhere`);
  return { ...change, move };
}

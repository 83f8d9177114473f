import { follow } from "../kernel/decide.ts";
import type { Effect } from "../kernel/outcome.ts";
import { create } from "./create.ts";
import type { Queryable } from "./database.ts";
import { storeOf, type ThingKey, type ThingStores } from "./things.ts";
import { commitUnits, type Unit, type UnitResult } from "./transitions.ts";
import * as work from "./work.ts";

/** The effects of one unit, worked out against the things as they are under the lock. */
export interface EffectPlan {
  readonly actor: string;
  readonly creates: readonly Extract<Effect, { type: "create" }>[];
  readonly moves: readonly Unit[];
  readonly wakes: readonly ThingKey[];
}

export const lockedByEffects = (effects: readonly Effect[] = []): ThingKey[] =>
  effects.map(({ kind, id }) => ({ kind, id }));

/** Throws when an effect cannot be: the unit then fails as a whole, alone, and says why. */
export async function planEffects(
  tx: Queryable,
  stores: ThingStores,
  units: readonly Unit[],
  dropped: ReadonlyMap<Unit, UnitResult>,
): Promise<Map<Unit, EffectPlan>> {
  const plans = new Map<Unit, EffectPlan>();
  for (const unit of units) {
    if (!unit.effects || unit.effects.length === 0 || dropped.has(unit)) continue;
    const moves: Unit[] = [];
    for (const effect of unit.effects)
      if (effect.type === "move") moves.push(...(await planMove(tx, stores, unit, effect)));
    plans.set(unit, {
      actor: unit.actor,
      creates: unit.effects.filter((effect) => effect.type === "create"),
      moves,
      wakes: unit.effects.filter((effect) => effect.type === "wake"),
    });
  }
  return plans;
}

export async function applyEffects(tx: Queryable, stores: ThingStores, plans: readonly EffectPlan[]): Promise<void> {
  for (const plan of plans) {
    for (const { kind, id, row, mustBeNew } of plan.creates) {
      const isNew = await create(tx, storeOf(stores, kind), { id, row, actor: plan.actor, ifMissing: true });
      if (mustBeNew && !isNew) throw new Error(`${kind} ${id} exists already, and cannot be made a second time`);
    }
  }
  const moves = plans.flatMap((plan) => plan.moves);
  await moveAll(tx, stores, moves);
  await work.wake(tx, [
    ...moves.map((move) => ({ kind: move.kind, id: move.thing.id })),
    ...plans.flatMap((plan) => plan.wakes),
  ]);
}

/** An effect that is not written takes its unit, and the transaction, with it: there is no half of a unit. */
async function moveAll(tx: Queryable, stores: ThingStores, moves: readonly Unit[]): Promise<void> {
  if (moves.length === 0) return;
  const results = await commitUnits(tx, stores, moves);
  for (const [index, { kind, thing, move }] of moves.entries()) {
    const result = results[index];
    if (result?.type === "committed") continue;
    const why =
      result?.type === "waiting"
        ? `${result.for.holder.kind} ${result.for.holder.id} (${result.for.reason}) works on it`
        : "it has changed meanwhile";
    throw new Error(`${move?.trigger} cannot move ${kind} ${thing.id}: ${why}`);
  }
}

async function planMove(
  tx: Queryable,
  stores: ThingStores,
  unit: Unit,
  effect: Extract<Effect, { type: "move" }>,
): Promise<Unit[]> {
  const store = storeOf(stores, effect.kind);
  const { things, unreadable } = await store.load(tx, [effect.id]);
  const [thing] = things;
  if (!thing) {
    const why = unreadable[0] ? `cannot be read (${unreadable[0].error})` : "does not exist";
    throw new Error(`${effect.kind} ${effect.id} ${why}, so ${effect.cause} cannot move it`);
  }
  const move = follow(store.lifecycle, thing, { owner: "other", name: effect.cause, message: effect.message });
  if (!move) throw new Error(`${effect.kind} ${effect.id} is ${thing.state.name}, where ${effect.cause} leads nowhere`);
  return [{ thing, kind: effect.kind, move, actor: `${unit.kind} ${unit.thing.id}` }];
}

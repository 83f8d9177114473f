import type { Transaction } from "../../postgres/database.ts";
import * as claims from "../claims/claims.ts";
import { holderOf, wishOf } from "../claims/wishes.ts";
import { keyOf, type Unit } from "../commit/unit.ts";
import type { Waiting } from "../commit/unit-result.ts";
import { nameOf, type ThingStores } from "../things.ts";
import type { EffectPlan } from "./plan-effects.ts";

/** The claims that a unit's effects need, since they move things into states with `claims`. */
export interface EffectClaims {
  /** To be taken, unless the unit has to wait for claims of its own. */
  readonly wishes: ReadonlyMap<Unit, readonly claims.ClaimWish[]>;
  readonly waiting: ReadonlyMap<Unit, Waiting>;
}

/**
 * Of those claims, the ones that are to be had, and the units that must wait since others are not. Nothing is queued for them: the thing
 * that would be moved knows nothing of it, and a ticket that nobody wants would bar all behind it. What the unit's own thing holds, or
 * takes with this very move, is not in the way: whatever it has others do is done under its claim.
 */
export async function findEffectClaims(
  tx: Transaction,
  stores: ThingStores,
  plans: ReadonlyMap<Unit, EffectPlan>,
): Promise<EffectClaims> {
  const wanted = [...plans].flatMap(([unit, { unit: itself, changes }]) =>
    changes.flatMap((moved) => {
      const wish = wishOf(stores, moved);
      return wish ? [{ unit, moved, wish, underUnit: { ...wish, holder: holderOf(stores, itself) } }] : [];
    }),
  );
  const own = new Map([...plans].map(([unit, plan]) => [unit, wishOf(stores, plan.unit)?.targets.map(nameOf) ?? []]));
  const inTheWay = await claims.findInTheWay(
    tx,
    wanted.flatMap(({ wish, underUnit }) => [wish, underUnit]),
  );
  const waiting = new Map<Unit, Waiting>();
  const wishes = new Map<Unit, claims.ClaimWish[]>();
  for (const { unit, moved, wish, underUnit } of wanted) {
    const obstacles = inTheWay.get(wish);
    const isTakenByUnit = own.get(unit)?.includes(nameOf(keyOf(moved))) ?? false;
    if (isTakenByUnit || (obstacles && !inTheWay.has(underUnit)))
      wishes.set(unit, [...(wishes.get(unit) ?? []), underUnit]);
    else if (!obstacles) wishes.set(unit, [...(wishes.get(unit) ?? []), wish]);
    else {
      const wait = { inTheWay: obstacles, ofSeveral: true, barExpired: false, untilBarEnds: undefined };
      waiting.set(unit, { type: "waiting", for: wait, moving: keyOf(moved) });
    }
  }
  return { wishes, waiting };
}

export async function takeEffectClaims(tx: Transaction, wishes: readonly claims.ClaimWish[]): Promise<void> {
  const waits = await claims.acquire(tx, wishes);
  // Two units of one batch want the same: written one by one, the second finds the first in its way.
  for (const [{ claimant }, { inTheWay }] of waits)
    throw new Error(
      `${nameOf(claimant)} was just claimed by ${inTheWay.map(({ holder }) => nameOf(holder)).join(", ")}`,
    );
}

import type { OrderEffect } from "../../../kernel/effects.ts";
import type { Transaction } from "../../postgres/database.ts";
import type { Unit } from "../commit/unit.ts";
import type { CommitUnits } from "../commit/unit-result.ts";
import type { OrderDesk, PlacedOrder } from "../orders.ts";
import { storeOf, type ThingStores } from "../things.ts";

export const ordersOf = ({ kind: by, thing, effects = [] }: Unit): PlacedOrder[] =>
  effects
    .filter((effect): effect is OrderEffect => effect.type === "order")
    .map(({ kind, id, order }) => ({ kind, id, order, by: `${by} ${thing.id}` }));

/** Units that order what cannot be taken any more: it could when they were worked out. */
export async function findRefused(tx: Transaction, stores: ThingStores, units: readonly Unit[]): Promise<Unit[]> {
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

/** `commit` writes moves: the writer of states places orders, so that it is handed in and not imported. */
export async function placeOrders(
  tx: Transaction,
  stores: ThingStores,
  { orders, commit }: { readonly orders: readonly PlacedOrder[]; readonly commit: CommitUnits },
): Promise<void> {
  for (const [kind, ofKind] of Map.groupBy(orders, (placed) => placed.kind))
    await deskOf(stores, kind).place(tx, { stores, commit, orders: ofKind });
}

function deskOf(stores: ThingStores, kind: string): OrderDesk {
  const desk = storeOf(stores, kind).orders;
  if (!desk) throw new Error(`nothing can be ordered of things of kind ${kind}`);
  return desk;
}

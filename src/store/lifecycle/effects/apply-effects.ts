import { randomUUID } from "node:crypto";
import type { CreateEffect } from "../../../kernel/effects.ts";
import type { Transaction } from "../../postgres/database.ts";
import { afterUnit, keyOf, lastMoveOf, type Unit } from "../commit/unit.ts";
import type { CommitUnits } from "../commit/unit-result.ts";
import { createAll } from "../create.ts";
import { describeOrigin, writeRequests } from "../requests.ts";
import { nameOf, storeOf, type ThingKey, type ThingStores } from "../things.ts";
import { changeAlerts } from "./effect-alerts.ts";
import { placeOrders } from "./effect-orders.ts";
import type { EffectPlan } from "./plan-effects.ts";

/** What effects do beside changing things; the caller has locked everything and wakes what is `reacting`. */
export async function applyEffects(
  tx: Transaction,
  stores: ThingStores,
  { plans, commit }: { readonly plans: readonly EffectPlan[]; readonly commit: CommitUnits },
): Promise<void> {
  await createThings(tx, stores, plans);
  await recordRequests(tx, stores, plans);
  await changeAlerts(tx, stores, plans);
  await appendLogs(tx, stores, plans);
  await placeOrders(tx, stores, { orders: plans.flatMap(({ orders }) => orders), commit });
}

/** One statement for all things of a kind with the same columns that were made in the same way. */
async function createThings(tx: Transaction, stores: ThingStores, plans: readonly EffectPlan[]): Promise<void> {
  const creates = plans.flatMap(({ unit, creates: made }) => made.map((one) => ({ ...one, actor: unit.actor })));
  const columnsOf = ({ row }: CreateEffect) => Object.keys(row).sort().join(" ");
  for (const alike of Map.groupBy(creates, (one) => [one.kind, columnsOf(one), one.actor].join("\n")).values()) {
    const [{ kind, actor }] = alike as [(typeof creates)[number]];
    const made = await createAll(tx, storeOf(stores, kind), alike, { actor, ifMissing: true });
    const known = alike.find(({ id, mustBeNew }) => mustBeNew && !made.has(id));
    if (known) throw new Error(`${kind} ${known.id} exists already, and cannot be made a second time`);
  }
}

/** One statement for all things of a kind that are asked by the same field; of two wishes of one unit the last holds. */
async function recordRequests(tx: Transaction, stores: ThingStores, plans: readonly EffectPlan[]): Promise<void> {
  const asked = plans.flatMap(({ unit, requests }) => requests.map((effect) => ({ ...effect, origin: keyOf(unit) })));
  for (const alike of Map.groupBy(asked, ({ kind, field }) => `${kind} ${field}`).values()) {
    const [{ kind, field }] = alike as [(typeof asked)[number]];
    const requests = [...new Map(alike.map((one) => [nameOf(one), one])).values()].map(({ id, wish, origin }) => ({
      id,
      wish,
      origin,
      requestId: randomUUID(),
      initiator: describeOrigin(origin),
    }));
    const known = await writeRequests(tx, storeOf(stores, kind), field, requests);
    const missing = requests.find(({ id }) => !known.has(id));
    if (missing) throw new Error(`${kind} ${missing.id} does not exist, so nothing can be asked of it`);
  }
}

/** What one thing's steps said at several places is one log. */
async function appendLogs(tx: Transaction, stores: ThingStores, plans: readonly EffectPlan[]): Promise<void> {
  const logs = plans.flatMap((plan) => plan.logs);
  for (const [kind, ofKind] of Map.groupBy(logs, (log) => log.kind)) {
    const byThing = [...Map.groupBy(ofKind, ({ id }) => id)];
    await storeOf(stores, kind).appendLogs?.(
      tx,
      byThing.map(([id, ofThing]) => ({ id, lines: ofThing.flatMap(({ lines }) => lines) })),
    );
  }
}

/** What the effects changed where a pass at it could lead to anything. */
export const reacting = (stores: ThingStores, { changes, requests }: EffectPlan): ThingKey[] => [
  ...changes.filter((change) => mayReact(stores, change)).map(keyOf),
  ...requests,
];

function mayReact(stores: ThingStores, unit: Unit): boolean {
  const store = storeOf(stores, unit.kind);
  if (!store.restsIdle) return true;
  const move = lastMoveOf(unit);
  if (!move) return false;
  return store.lifecycle.states[move.to]?.rest !== true || !store.restsIdle(afterUnit(store, unit));
}

import type { CancelOrder } from "../../runs/executor/children.ts";
import { runLifecycle } from "../../runs/model/lifecycle.ts";
import { recordChanges } from "../lifecycle/changes.ts";
import type { OrderDesk, PlacedOrder } from "../lifecycle/orders.ts";
import { storeOf } from "../lifecycle/things.ts";
import * as work from "../lifecycle/work.ts";

const { kind } = runLifecycle;

const orderOf = ({ order }: PlacedOrder): CancelOrder => order as CancelOrder;

/** A run takes one order: the run that started it cancels it. One that has ended, or is being canceled, needs no more. */
export const runOrders: OrderDesk = {
  async refusals() {
    return new Map();
  },
  async place(tx, { stores, orders }) {
    const going = await tx.query<{ id: string }>(
      "select id from runs where id = any($1) and state in ('PENDING', 'RUNNING') and cancel_requested_at is null",
      [orders.map(({ id }) => id)],
    );
    const ids = new Set(going.map(({ id }) => id));
    const taken = orders.filter(({ id }) => ids.has(id));
    await recordChanges(
      tx,
      storeOf(stores, kind),
      taken.map((placed) => ({
        id: placed.id,
        actor: placed.by,
        type: "cancel_requested",
        reason: orderOf(placed).cancel,
        set: { cancel_requested_at: orderOf(placed).at },
      })),
    );
    await work.wake(
      tx,
      taken.map(({ id }) => ({ kind, id })),
    );
  },
};

import type { Transaction } from "../postgres/database.ts";
import type { ThingKey } from "./things.ts";

/**
 * Locks things for the rest of the transaction, before anything is written.
 *
 * Always all at once and in one order, so that two transactions never wait for each other; and before the first write takes
 * the transaction's id, since otherwise events of one thing could reach watchers in the wrong order.
 */
export async function lockThings(tx: Transaction, keys: readonly ThingKey[]): Promise<void> {
  if (keys.length === 0) return;
  await tx.query({
    hot: true,
    text: `select pg_advisory_xact_lock(k)
             from (select distinct hashtextextended(kind || '/' || id, 0) as k
                     from unnest($1::text[], $2::text[]) as t(kind, id) order by k) as ordered`,
    values: [keys.map((key) => key.kind), keys.map((key) => key.id)],
  });
}

import type { Queryable, Transaction } from "../postgres/database.ts";
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

/** So many transactions of all replicas may lock as much as they may at the same time. */
const SHARES = 10;
const LEAST = 50;

/**
 * How many things one batch may lock. Locks of all connections are kept in one table of a fixed size, and who finds it full fails; so a
 * batch takes a share of it alone.
 */
export async function readLockBudget(db: Queryable): Promise<number> {
  const [row] = await db.query<{ slots: number }>(
    `select current_setting('max_locks_per_transaction')::int * current_setting('max_connections')::int as slots`,
  );
  return Math.max(LEAST, Math.floor((row?.slots ?? 0) / SHARES));
}

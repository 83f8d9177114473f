import { AppError } from "../../kernel/errors.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { nameOf, type ThingKey } from "./things.ts";

/**
 * Locks things for the rest of the transaction, before anything is written.
 *
 * Always all at once and in one order, so that two transactions never wait for each other; and before the first write takes
 * the transaction's id, since otherwise events of one thing could reach watchers in the wrong order.
 *
 * @throws AppError "exhausted" when they are more than the database has room for.
 */
export async function lockThings(tx: Transaction, keys: readonly ThingKey[]): Promise<void> {
  if (keys.length === 0) return;
  if (keys.length > NEVER_TOO_MANY) await refuseTooMany(tx, new Set(keys.map(nameOf)).size);
  await tx.query({
    hot: true,
    text: `select pg_advisory_xact_lock(k)
             from (select distinct hashtextextended(kind || '/' || id, 0) as k
                     from unnest($1::text[], $2::text[]) as t(kind, id) order by k) as ordered`,
    values: [keys.map((key) => key.kind), keys.map((key) => key.id)],
  });
}

/** Every database has room for so many. */
const NEVER_TOO_MANY = 1_000;

/** Before the first is taken: who fills the table has all others fail meanwhile, and fails in the end. */
async function refuseTooMany(tx: Transaction, count: number): Promise<void> {
  const room = await readLockRoom(tx);
  if (count <= room) return;
  throw new AppError(
    "exhausted",
    `${count} things would be changed together, and the database has room for ${room} locks: change fewer at once, or raise its max_locks_per_transaction`,
  );
}

/** Locks of all connections are kept in one table of a fixed size. It has room for these, and for a few more. */
async function readLockRoom(db: Queryable): Promise<number> {
  const [row] = await db.query<{ slots: number }>(
    `select current_setting('max_locks_per_transaction')::int * current_setting('max_connections')::int as slots`,
  );
  return row?.slots ?? 0;
}

/** So many transactions of all replicas may lock as much as they may at the same time. */
const SHARES = 10;
const LEAST = 50;

/** How many things one batch may lock. Who finds the table of locks full fails, so a batch takes a share of it alone. */
export async function readLockBudget(db: Queryable): Promise<number> {
  return Math.max(LEAST, Math.floor((await readLockRoom(db)) / SHARES));
}

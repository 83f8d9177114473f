import { seconds } from "../../kernel/time/duration.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

/** A replica that has not said for so long which keys it has is gone. */
const LIVING = `seen_at > now() - interval '${seconds(30) / 1_000} seconds'`;

export interface ListedKey {
  readonly id: string;
  readonly firstSeenAt: Date;
  /** When it began to encrypt; null: it never did. */
  readonly currentSince: Date | null;
  readonly isCurrent: boolean;
  /** How many secrets are encrypted with it. */
  readonly secrets: number;
  /** How many of the replicas that are at work have it in their file. */
  readonly holders: number;
}

/** Null: nobody has said yet. */
export async function currentKeyId(db: Queryable): Promise<string | null> {
  const [row] = await db.query<{ key_id: string }>({
    name: "secret-keys-current",
    text: "select key_id from secret_keys where is_current",
  });
  return row?.key_id ?? null;
}

/** What the file of a replica holds now, in the order of the file; what it held before and holds no more is not told of any more. */
export async function noteKeys(db: Queryable, replica: string, keyIds: readonly string[]): Promise<void> {
  await db.execute(
    `with file as (select * from unnest($2::text[]) with ordinality f (key_id, line)),
          known as (insert into secret_keys (key_id) select key_id from file order by line on conflict do nothing),
          held as (insert into secret_key_holders (replica, key_id, seen_at) select $1, key_id, now() from file
                   on conflict (replica, key_id) do update set seen_at = excluded.seen_at)
     delete from secret_key_holders where (replica = $1 and key_id <> all ($2::text[])) or seen_at < now() - interval '1 day'`,
    [replica, keyIds],
  );
}

/** A replica that stops need not be waited for. */
export async function forgetHolder(db: Queryable, replica: string): Promise<void> {
  await db.execute("delete from secret_key_holders where replica = $1", [replica]);
}

export async function countReplicas(db: Queryable): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(distinct replica)::int as count from secret_key_holders where ${LIVING}`,
  );
  return row?.count ?? 0;
}

/** The oldest first. */
export const listKeys = (db: Queryable): Promise<ListedKey[]> =>
  db.query<ListedKey>(
    `select k.key_id as id, k.first_seen_at as "firstSeenAt", k.current_since as "currentSince", k.is_current as "isCurrent",
            (select count(*)::int from secrets s where s.key_id = k.key_id) as secrets,
            (select count(*)::int from secret_key_holders h where h.key_id = k.key_id and ${LIVING}) as holders
       from secret_keys k order by k.first_seen_at, k.key_id`,
  );

/** How many secrets are not encrypted with the current key. */
export async function countEarlierSecrets(db: Queryable): Promise<number> {
  const [row] = await db.query<{ count: number }>({
    name: "secret-keys-earlier",
    text: `select count(*)::int as count from secrets
            where key_id <> (select key_id from secret_keys where is_current)`,
  });
  return row?.count ?? 0;
}

/** Whoever changes which key encrypts does so alone. */
export async function lockKeys(tx: Transaction): Promise<void> {
  await tx.execute("lock table secret_keys in share row exclusive mode");
}

/** The caller holds the lock. */
export async function makeCurrent(tx: Transaction, keyId: string): Promise<void> {
  await tx.execute("update secret_keys set is_current = false where is_current and key_id <> $1", [keyId]);
  await tx.execute("update secret_keys set is_current = true, current_since = now() where key_id = $1", [keyId]);
  failPoint("secret-keys:current");
}

import { AppError } from "../../kernel/errors.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { Queryable, Transaction } from "./database.ts";
import { failPoint } from "./fail-points.ts";

export interface KeyedCall {
  /** Which method, and whose call: a key means nothing in the hands of another caller. */
  readonly scope: { readonly method: string; readonly caller: string };
  readonly key: string;
  /** Of the arguments: the same key with others is a slip. */
  readonly fingerprint: string;
  readonly thingId: string;
}

/**
 * Notes a caller's idempotency key. Returns the thing that an earlier call with the same key was about: its answer still holds;
 * null when this call is the first. A second caller that races with the first waits here until that one has committed.
 */
export async function rememberKey(tx: Transaction, call: KeyedCall): Promise<string | null> {
  const scope = JSON.stringify([call.scope.method, call.scope.caller]);
  const inserted = await tx.query(
    `insert into idempotency_keys (scope, key, fingerprint, thing_id) values ($1, $2, $3, $4) on conflict do nothing returning key`,
    [scope, call.key, call.fingerprint, call.thingId],
  );
  failPoint("idempotency:remembered");
  if (inserted.length > 0) return null;
  const [known] = await tx.query<{ fingerprint: string; thing_id: string }>(
    `select fingerprint, thing_id from idempotency_keys where scope = $1 and key = $2`,
    [scope, call.key],
  );
  if (known?.fingerprint === call.fingerprint) return known.thing_id;
  throw new AppError("invalid_argument", "request_id: was used before with other arguments; choose a new one", {
    field: "request_id",
  });
}

export interface PlainKey {
  readonly scope: string;
  readonly key: string;
  readonly thingId: string;
}

/** Notes many keys at once, of calls whose answer is the same whatever they said. Returns those that were known already. */
export async function rememberKeys<K extends PlainKey>(tx: Transaction, keys: readonly K[]): Promise<ReadonlySet<K>> {
  if (keys.length === 0) return new Set();
  const inserted = await tx.query<{ scope: string; key: string }>(
    `insert into idempotency_keys (scope, key, fingerprint, thing_id)
     select k.scope, k.key, '', k.thing_id from unnest($1::text[], $2::text[], $3::text[]) as k(scope, key, thing_id)
     on conflict do nothing returning scope, key`,
    [keys.map(({ scope }) => scope), keys.map(({ key }) => key), keys.map(({ thingId }) => thingId)],
  );
  failPoint("idempotency:remembered");
  const fresh = new Set(inserted.map(({ scope, key }) => JSON.stringify([scope, key])));
  return new Set(keys.filter(({ scope, key }) => !fresh.has(JSON.stringify([scope, key]))));
}

/** The oldest first, at most so many at a time; returns how many there were. */
export async function forgetKeys(db: Queryable, retention: Duration, most: number): Promise<number> {
  return db.execute(
    `delete from idempotency_keys where ctid in (
       select ctid from idempotency_keys where created_at < now() - $1 * interval '1 ms'
        order by created_at limit ${Math.floor(most)})`,
    [retention],
  );
}

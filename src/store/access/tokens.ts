import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { parseScope, type Scope } from "../../kernel/access/scope.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

export interface TokenRow {
  readonly id: string;
  readonly name: string;
  readonly roles: readonly string[];
  /** Null: it is limited by its roles alone. */
  readonly scope: Scope | null;
  readonly createdAt: Date;
  readonly createdBy: string;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  readonly lastUsedAt: Date | null;
  /** What its age is counted from; null: it has no greatest age. */
  readonly agedFrom: Date | null;
}

/** The greatest age of tokens; null: they may grow as old as they like. */
export type MaxAge = Duration | null;

/** Those with a scope have their roles apart: a replica that knows nothing of scopes must find none. */
export const TOKEN_ROLES = "coalesce(scoped_roles, roles)";

export const TOKEN_COLUMNS = `id, name, ${TOKEN_ROLES} as roles, scope, created_at as "createdAt", created_by as "createdBy", expires_at as "expiresAt",
  revoked_at as "revokedAt", last_used_at as "lastUsedAt", case when not ageless and bound_to is null then aged_from end as "agedFrom"`;

/** When the token stops working: at the end that it was given or at the greatest age, whichever comes first. Null: never. */
export function endOfToken(
  { expiresAt, agedFrom }: Pick<TokenRow, "expiresAt" | "agedFrom">,
  maxAge: MaxAge,
): Date | null {
  if (maxAge === null || agedFrom === null) return expiresAt;
  const byAge = new Date(agedFrom.getTime() + maxAge);
  return expiresAt !== null && expiresAt < byAge ? expiresAt : byAge;
}

const TOKEN = /^mw_([0-9a-f]{16})_[0-9a-f]{64}$/;

const hashOf = (token: string): Buffer => createHash("sha256").update(token).digest();

export interface NewToken {
  readonly name: string;
  readonly roles: readonly string[];
  readonly createdBy: string;
  /** Absent: it is limited by its roles alone. */
  readonly scope?: Scope | null;
  /** Absent: it does not expire. */
  readonly expiresAt?: Date | null;
  /** It has no greatest age, and others may bear its name. */
  readonly ageless?: boolean;
}

/** The index that keeps the names of tokens that work apart. */
export const LIVING_NAMES = "tokens_living_names";

/** A token of the form that all have, from 40 random bytes, or from bytes that follow from something. */
export function tokenFrom(bytes: Buffer): { readonly id: string; readonly token: string } {
  const id = bytes.subarray(0, 8).toString("hex");
  return { id, token: `mw_${id}_${bytes.subarray(8, 40).toString("hex")}` };
}

/** One that speaks for a single thing. Whoever makes it again with the same bytes has the same token. */
export async function createBoundToken(
  tx: Transaction,
  { id, token }: { readonly id: string; readonly token: string },
  { name, roles, createdBy, boundTo }: NewToken & { readonly boundTo: string },
): Promise<void> {
  await tx.execute(
    `insert into tokens (id, name, roles, hash, created_by, bound_to) values ($1, $2, $3::text[], $4, $5, $6)`,
    [id, name, roles, hashOf(token), createdBy, boundTo],
  );
  failPoint("tokens:bound");
}

/** The token itself is in the answer alone; the database keeps its hash. */
export async function createToken(
  db: Queryable,
  { name, roles, createdBy, scope = null, expiresAt = null, ageless = false }: NewToken,
): Promise<{ id: string; token: string; agedFrom: Date | null }> {
  const { id, token } = tokenFrom(randomBytes(40));
  const [row] = await db.query<{ agedFrom: Date }>(
    `insert into tokens (id, name, roles, hash, created_by, expires_at, ageless, scope, scoped_roles)
     values ($1, $2, case when $8::jsonb is null then $3::text[] else '{}' end, $4, $5, $6, $7, $8,
             case when $8::jsonb is not null then $3::text[] end)
     returning aged_from as "agedFrom"`,
    [id, name, roles, hashOf(token), createdBy, expiresAt, ageless, scope],
  );
  failPoint("tokens:created");
  return { id, token, agedFrom: ageless ? null : (row?.agedFrom ?? null) };
}

/** Tokens that have ended do not keep their name from others. They stay ended, also when ages are no longer limited. */
export async function giveUpName(tx: Transaction, name: string, now: Date, maxAge: MaxAge): Promise<void> {
  await tx.execute(
    `update tokens set name_given_up = true, expires_at = least(expires_at, $2)
      where name = $1 and bound_to is null and not name_given_up
        and (expires_at <= $2 or (not ageless and aged_from <= $2::timestamptz - $3 * interval '1 millisecond'))`,
    [name, now, maxAge],
  );
  failPoint("tokens:name-given-up");
}

/** Only `valid` lets anybody in; the others are told apart for the holder of the token alone. */
export type TokenVerdict =
  | {
      readonly status: "valid";
      readonly id: string;
      readonly name: string;
      readonly roles: readonly string[];
      readonly scope: Scope | null;
      readonly expiresAt: Date | null;
      /** The one thing that the bearer speaks for; null: for itself. */
      readonly boundTo: string | null;
    }
  | { readonly status: "expired"; readonly at: Date }
  | { readonly status: "revoked"; readonly at: Date }
  | { readonly status: "unknown" };

/** Whether the token lets its bearer in. That it expired or was revoked is told only to who holds the whole of it. */
export async function verifyToken(
  db: Queryable,
  token: string,
  now: Date,
  maxAge: MaxAge = null,
): Promise<TokenVerdict> {
  const id = TOKEN.exec(token)?.[1];
  if (id === undefined) return { status: "unknown" };
  const rows = await db.query<TokenRow & { hash: Buffer; boundTo: string | null }>(
    `select ${TOKEN_COLUMNS}, hash, bound_to as "boundTo" from tokens where id = $1`,
    [id],
  );
  const [row] = rows;
  if (row === undefined || !timingSafeEqual(row.hash, hashOf(token))) return { status: "unknown" };
  if (row.revokedAt !== null) return { status: "revoked", at: row.revokedAt };
  const expiresAt = endOfToken(row, maxAge);
  if (expiresAt !== null && expiresAt <= now) return { status: "expired", at: expiresAt };
  const { name, boundTo } = row;
  const scope = row.scope === null ? null : parseScope(row.scope);
  // A later version has limited it in a way that this one does not know.
  const roles = scope === undefined ? [] : row.roles;
  return { status: "valid", id, name, roles, scope: scope ?? null, expiresAt, boundTo };
}

/**
 * When tokens were used last, of many at once. Of each it is written once a minute at the most, also by several replicas together: a busy
 * token must not turn reads into writes. What somebody else is writing is left to the next time.
 */
export async function noteUses(db: Queryable, uses: ReadonlyMap<string, Date>): Promise<void> {
  await db.execute(
    `with due as (
       select t.id, u.at from unnest($1::text[], $2::timestamptz[]) as u(id, at) join tokens t on t.id = u.id
        where t.last_used_at is null or t.last_used_at <= u.at - interval '1 minute'
        order by t.id for update of t skip locked)
     update tokens set last_used_at = due.at from due where tokens.id = due.id`,
    [[...uses.keys()], [...uses.values()]],
  );
}

/** The names of working tokens that their age ends between the two moments, the first to end first. */
export async function tokensThatAge(
  db: Queryable,
  { from, to, maxAge }: { readonly from: Date; readonly to: Date; readonly maxAge: MaxAge },
): Promise<string[]> {
  if (maxAge === null) return [];
  const rows = await db.query<{ name: string }>(
    `select name from tokens
      where revoked_at is null and bound_to is null and not ageless
        and aged_from > $1::timestamptz - $3 * interval '1 millisecond' and aged_from <= $2::timestamptz - $3 * interval '1 millisecond'
        and (expires_at is null or expires_at > aged_from + $3 * interval '1 millisecond')
      order by aged_from, id`,
    [from, to, maxAge],
  );
  return rows.map(({ name }) => name);
}

/** The row, revoked now or earlier; nothing if there never was such a token. */
export async function revokeToken(db: Queryable, id: string, now: Date): Promise<TokenRow | null> {
  const rows = await db.query<TokenRow>(
    `update tokens set revoked_at = coalesce(revoked_at, $2) where id = $1 returning ${TOKEN_COLUMNS}`,
    [id, now],
  );
  failPoint("tokens:revoked");
  return rows[0] ?? null;
}

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

export interface TokenRow {
  readonly id: string;
  readonly name: string;
  readonly roles: readonly string[];
  readonly createdAt: Date;
  readonly createdBy: string;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  readonly lastUsedAt: Date | null;
}

export const TOKEN_COLUMNS = `id, name, roles, created_at as "createdAt", created_by as "createdBy", expires_at as "expiresAt",
  revoked_at as "revokedAt", last_used_at as "lastUsedAt"`;

const TOKEN = /^mw_([0-9a-f]{16})_[0-9a-f]{64}$/;

const hashOf = (token: string): Buffer => createHash("sha256").update(token).digest();

export interface NewToken {
  readonly name: string;
  readonly roles: readonly string[];
  readonly createdBy: string;
  /** Absent: it does not expire. */
  readonly expiresAt?: Date | null;
}

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
  { name, roles, createdBy, expiresAt = null }: NewToken,
): Promise<{ id: string; token: string }> {
  const { id, token } = tokenFrom(randomBytes(40));
  await db.execute(
    `insert into tokens (id, name, roles, hash, created_by, expires_at) values ($1, $2, $3::text[], $4, $5, $6)`,
    [id, name, roles, hashOf(token), createdBy, expiresAt],
  );
  failPoint("tokens:created");
  return { id, token };
}

/** Only `valid` lets anybody in; the others are told apart for the holder of the token alone. */
export type TokenVerdict =
  | {
      readonly status: "valid";
      readonly id: string;
      readonly name: string;
      readonly roles: readonly string[];
      readonly expiresAt: Date | null;
      /** The one thing that the bearer speaks for; null: for itself. */
      readonly boundTo: string | null;
    }
  | { readonly status: "expired"; readonly at: Date }
  | { readonly status: "revoked"; readonly at: Date }
  | { readonly status: "unknown" };

/** Whether the token lets its bearer in. That it expired or was revoked is told only to who holds the whole of it. */
export async function verifyToken(db: Queryable, token: string, now: Date): Promise<TokenVerdict> {
  const id = TOKEN.exec(token)?.[1];
  if (id === undefined) return { status: "unknown" };
  const rows = await db.query<TokenRow & { hash: Buffer; boundTo: string | null }>(
    `select ${TOKEN_COLUMNS}, hash, bound_to as "boundTo" from tokens where id = $1`,
    [id],
  );
  const [row] = rows;
  if (row === undefined || !timingSafeEqual(row.hash, hashOf(token))) return { status: "unknown" };
  if (row.revokedAt !== null) return { status: "revoked", at: row.revokedAt };
  if (row.expiresAt !== null && row.expiresAt <= now) return { status: "expired", at: row.expiresAt };
  const { name, roles, expiresAt, boundTo } = row;
  // Of agents, who call all the time, it is written elsewhere when they were heard last.
  if (boundTo === null) await noteUse(db, row, now);
  return { status: "valid", id, name, roles, expiresAt, boundTo };
}

/** At most once a minute: a busy token must not turn reads into writes. */
async function noteUse(db: Queryable, { id, lastUsedAt }: TokenRow, now: Date): Promise<void> {
  if (lastUsedAt !== null && now.getTime() - lastUsedAt.getTime() < 60_000) return;
  await db.execute(`update tokens set last_used_at = $2 where id = $1`, [id, now]);
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

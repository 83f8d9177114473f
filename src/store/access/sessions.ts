import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { parseScope, type Scope } from "../../kernel/access/scope.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import type { TokenVerdict } from "./tokens.ts";

/** What was shown at the sign-in. */
export type Credential =
  | { readonly kind: "token"; readonly ref: string }
  /** By its SHA-256, as the configuration has it. */
  | { readonly kind: "configured"; readonly ref: string }
  | { readonly kind: "jwt" | "certificate"; readonly ref: null };

export interface SessionRow {
  readonly id: string;
  readonly name: string;
  readonly roles: readonly string[];
  readonly scope: Scope | null;
  readonly credentialKind: Credential["kind"];
  readonly credentialRef: string | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly endedAt: Date | null;
  readonly address: string | null;
  readonly userAgent: string;
}

export const SESSION_COLUMNS = `s.id, s.name, s.roles, s.scope, s.credential_kind as "credentialKind", s.credential_ref as "credentialRef",
  s.created_at as "createdAt", s.expires_at as "expiresAt", least(s.ended_at, t.revoked_at) as "endedAt", s.address, s.user_agent as "userAgent"`;

/** A session of a token ends when the token is revoked. */
export const SESSIONS = `console_sessions s left join tokens t on s.credential_kind = 'token' and t.id = s.credential_ref`;

export type NewSession = Pick<SessionRow, "name" | "roles" | "scope" | "expiresAt" | "address" | "userAgent"> & {
  readonly credential: Credential;
};

const SECRET = /^([0-9a-f]{16})\.[0-9a-f]{64}$/;
const hashOf = (secret: string): Buffer => createHash("sha256").update(secret).digest();

/** The secret itself is in the answer alone. */
export async function createSession(tx: Transaction, session: NewSession): Promise<{ id: string; secret: string }> {
  const id = randomBytes(8).toString("hex");
  const secret = `${id}.${randomBytes(32).toString("hex")}`;
  const { name, roles, scope, credential, expiresAt, address, userAgent } = session;
  await tx.execute(
    `insert into console_sessions (id, hash, name, roles, scope, credential_kind, credential_ref, expires_at, address, user_agent)
     values ($1, $2, $3, $4::text[], $5, $6, $7, $8, $9, $10)`,
    [id, hashOf(secret), name, roles, scope, credential.kind, credential.ref, expiresAt, address, userAgent],
  );
  failPoint("sessions:created");
  return { id, secret };
}

/** As a token's verdict: a session is one more bearer of roles. `credential` says what it came from. */
export type SessionVerdict =
  | (Extract<TokenVerdict, { status: "valid" }> & { readonly credential: Credential })
  | Exclude<TokenVerdict, { status: "valid" }>;

export async function verifySession(db: Queryable, secret: string, now: Date): Promise<SessionVerdict> {
  const id = SECRET.exec(secret)?.[1];
  if (id === undefined) return { status: "unknown" };
  const [row] = await db.query<SessionRow & { hash: Buffer }>(
    `select ${SESSION_COLUMNS}, s.hash from ${SESSIONS} where s.id = $1`,
    [id],
  );
  if (row === undefined || !timingSafeEqual(row.hash, hashOf(secret))) return { status: "unknown" };
  if (row.endedAt !== null) return { status: "revoked", at: row.endedAt };
  if (row.expiresAt <= now) return { status: "expired", at: row.expiresAt };
  const { name, expiresAt, credentialKind: kind, credentialRef: ref } = row;
  const scope = row.scope === null ? null : parseScope(row.scope);
  return {
    ...{ status: "valid", id, name, expiresAt, boundTo: null, credential: { kind, ref } as Credential },
    // As of tokens: a scope that this version does not know allows nothing.
    roles: scope === undefined ? [] : row.roles,
    scope: scope ?? null,
  };
}

/** The row, ended now or earlier; nothing if there never was such a session. */
export async function endSession(tx: Transaction, id: string, now: Date): Promise<SessionRow | null> {
  const [row] = await tx.query<SessionRow>(
    `with ended as (update console_sessions set ended_at = coalesce(ended_at, $2) where id = $1 returning *)
     select ${SESSION_COLUMNS.replace("least(s.ended_at, t.revoked_at)", "s.ended_at")} from ended s`,
    [id, now],
  );
  failPoint("sessions:ended");
  return row ?? null;
}

/** Those that ended before the moment, some at a time: whoever signs in next takes the rest. */
export async function forgetSessions(tx: Transaction, before: Date): Promise<void> {
  await tx.execute(
    `delete from console_sessions where id in (
       select id from console_sessions where least(expires_at, ended_at) < $1 limit 1000 for update skip locked)`,
    [before],
  );
  failPoint("sessions:forgotten");
}

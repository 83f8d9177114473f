import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { parseScope, type Scope } from "../../kernel/access/scope.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { endOfToken, type MaxAge, type TokenVerdict } from "./tokens.ts";

/** What was shown at the sign-in. */
export type Credential =
  | { readonly kind: "token"; readonly ref: string }
  /** By its SHA-256, as the configuration has it. */
  | { readonly kind: "configured"; readonly ref: string }
  /** A JSON Web Token, by its issuer. */
  | { readonly kind: "jwt"; readonly ref: string | null; readonly grounds: Grounds }
  | { readonly kind: "certificate"; readonly ref: null; readonly grounds: Grounds };

/**
 * What the configuration maps to roles: the values of the roles claim, or the SPIFFE id or names of the certificate. Null: an earlier version
 * made the session, and nobody knows.
 */
export type Grounds = readonly string[] | null;

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
    `insert into console_sessions (id, hash, name, roles, scope, credential_kind, credential_ref, grounds, expires_at, address, user_agent)
     values ($1, $2, $3, $4::text[], $5, $6, $7, $8::text[], $9, $10, $11)`,
    [
      id,
      hashOf(secret),
      name,
      roles,
      scope,
      credential.kind,
      credential.ref,
      groundsOf(credential),
      expiresAt,
      address,
      userAgent,
    ],
  );
  failPoint("sessions:created");
  return { id, secret };
}

const groundsOf = (credential: Credential): Grounds => ("grounds" in credential ? credential.grounds : null);

/** Whose sessions are counted together. Tokens have one name each; an issuer, and the authority of certificates, names many people. */
const OF_CREDENTIAL = "s.credential_kind = $1 and s.credential_ref is not distinct from $2 and s.name = $3";

/** Ends the oldest of a credential's sessions, so that no more than `most` of them work. The caller holds a lock for the credential. */
export async function endOldestSessions(
  tx: Transaction,
  {
    name,
    credential,
    most,
    now,
  }: Pick<NewSession, "name" | "credential"> & { readonly most: number; readonly now: Date },
): Promise<readonly string[]> {
  const ended = await tx.query<{ id: string }>(
    `with old as (
       select s.id from console_sessions s where ${OF_CREDENTIAL} and s.ended_at is null and s.expires_at > $4
        order by s.created_at desc, s.id offset $5)
     update console_sessions set ended_at = $4 from old where console_sessions.id = old.id returning console_sessions.id`,
    [credential.kind, credential.ref, name, now, most],
  );
  failPoint("sessions:displaced");
  return ended.map(({ id }) => id);
}

/** Of a credential's sessions that have ended, all but the newest `kept`: who signs in on and on does not fill the table. */
export async function forgetSessionsOf(
  tx: Transaction,
  {
    name,
    credential,
    kept,
    now,
  }: Pick<NewSession, "name" | "credential"> & { readonly kept: number; readonly now: Date },
): Promise<void> {
  await tx.execute(
    `delete from console_sessions where id in (
       select s.id from console_sessions s where ${OF_CREDENTIAL} and least(s.expires_at, s.ended_at) <= $4
        order by s.created_at desc, s.id offset $5 for update skip locked)`,
    [credential.kind, credential.ref, name, now, kept],
  );
  failPoint("sessions:forgotten-of-credential");
}

/** As a token's verdict: a session is one more bearer of roles. `credential` says what it came from. */
export type SessionVerdict =
  | (Extract<TokenVerdict, { status: "valid" }> & { readonly credential: Credential })
  | Exclude<TokenVerdict, { status: "valid" }>;

export async function verifySession(
  db: Queryable,
  secret: string,
  now: Date,
  maxAge: MaxAge = null,
): Promise<SessionVerdict> {
  const id = SECRET.exec(secret)?.[1];
  if (id === undefined) return { status: "unknown" };
  const [row] = await db.query<SessionRow & TokenAge & { hash: Buffer; grounds: Grounds }>(
    `select ${SESSION_COLUMNS}, s.hash, s.grounds, t.expires_at as "tokenExpiresAt",
            case when not t.ageless and t.bound_to is null then t.aged_from end as "agedFrom"
       from ${SESSIONS} where s.id = $1`,
    [id],
  );
  if (row === undefined || !timingSafeEqual(row.hash, hashOf(secret))) return { status: "unknown" };
  if (row.endedAt !== null) return { status: "revoked", at: row.endedAt };
  const expiresAt = endOfSession(row, maxAge);
  if (expiresAt <= now) return { status: "expired", at: expiresAt };
  const { name, credentialKind: kind, credentialRef: ref, grounds } = row;
  const scope = row.scope === null ? null : parseScope(row.scope);
  return {
    ...{ status: "valid", id, name, expiresAt, boundTo: null, credential: { kind, ref, grounds } as Credential },
    // As of tokens: a scope that this version does not know allows nothing.
    roles: scope === undefined ? [] : row.roles,
    scope: scope ?? null,
  };
}

interface TokenAge {
  readonly tokenExpiresAt: Date | null;
  readonly agedFrom: Date | null;
}

/** The greatest age of tokens may have become shorter since somebody signed in with one. */
function endOfSession(
  { expiresAt, tokenExpiresAt, agedFrom }: Pick<SessionRow, "expiresAt"> & TokenAge,
  maxAge: MaxAge,
): Date {
  const ofToken = endOfToken({ expiresAt: tokenExpiresAt, agedFrom }, maxAge);
  return ofToken !== null && ofToken < expiresAt ? ofToken : expiresAt;
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

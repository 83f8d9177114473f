import type { Scope } from "../../kernel/access/scope.ts";
import { type Duration, hours } from "../../kernel/time/duration.ts";
import { sessionListing } from "../../store/access/session-list.ts";
import * as store from "../../store/access/sessions.ts";
import * as journal from "../../store/lifecycle/journal.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import { auditOf, revoke } from "./revocation.ts";

export type { Credential, SessionRow, SessionVerdict } from "../../store/access/sessions.ts";

/** Sessions have no lifecycle, but what is done with them is audited. */
export const SESSION_KIND = "session";

/** How long sessions that have ended stay in the list. */
const KEPT = hours(30 * 24);
/** How many of one credential, whoever signs in on and on. */
const KEPT_OF_CREDENTIAL = 100;
const LONGEST_USER_AGENT = 256;

export interface SignIn {
  readonly name: string;
  readonly roles: readonly string[];
  readonly scope?: Scope;
  readonly credential: store.Credential;
  /** From then on the credential lets nobody in; absent: it does not run out. */
  readonly validUntil?: Date;
  readonly address: string | null;
  readonly userAgent: string;
}

export interface SessionRules {
  readonly lifetime: Duration;
  /** Of one credential at the same time. */
  readonly most: number;
}

/**
 * A session of somebody whose credential was checked. It ends with the credential, and after `lifetime` at the latest; and the oldest ones of the
 * credential end where there would be more than `most`.
 */
export async function openSession(
  deps: ServiceDeps,
  { name, roles, scope, credential, validUntil, address, userAgent }: SignIn,
  { lifetime, most }: SessionRules,
): Promise<{
  readonly id: string;
  readonly secret: string;
  readonly expiresAt: Date;
  readonly ended: readonly string[];
}> {
  const now = nowOf(deps);
  const byAge = new Date(now.getTime() + lifetime);
  const expiresAt = validUntil !== undefined && validUntil < byAge ? validUntil : byAge;
  const caller: Caller = { name, roles, address };
  const created = await deps.db.transaction(async (tx) => {
    await lockThings(tx, [{ kind: SESSION_KIND, id: `of ${credential.kind} ${credential.ref ?? ""} ${name}` }]);
    await store.forgetSessions(tx, new Date(now.getTime() - KEPT));
    const made = await store.createSession(tx, {
      ...{ name, roles, scope: scope ?? null, credential, expiresAt, address },
      userAgent: userAgent.replace(/[^\x20-\x7e]/g, "?").slice(0, LONGEST_USER_AGENT),
    });
    const data = { name, roles, credential: credential.kind, expires_at: expiresAt.toISOString() };
    const ended = await store.endOldestSessions(tx, { name, credential, most, now });
    await store.forgetSessionsOf(tx, { name, credential, kept: KEPT_OF_CREDENTIAL, now });
    const displaced = { version: 2, type: "revoked", data: { name, displaced_by: made.id } };
    await journal.append(tx, [
      { ...auditOf(SESSION_KIND, made.id, caller), version: 1, type: "created", data },
      ...ended.map((id) => ({ ...auditOf(SESSION_KIND, id, caller), ...displaced })),
    ]);
    journal.announce(tx);
    return { ...made, ended };
  });
  return { ...created, expiresAt };
}

/** Whether a session lets its browser in. */
export const verifySession = (deps: ServiceDeps, secret: string): Promise<store.SessionVerdict> =>
  store.verifySession(deps.db, secret, nowOf(deps), deps.tokenRules?.maxAge ?? null);

/** Filtered and sorted as every list; the newest first, unless the request says. */
export const pageSessions = (deps: ServiceDeps, request: ListRequest): Promise<ListPage<store.SessionRow>> =>
  pageList(deps, sessionListing, request, { show: (row) => row });

/** Ends a session at once; asking again is harmless. */
export const revokeSession = (deps: ServiceDeps, caller: Caller, id: string): Promise<void> =>
  revoke(deps, caller, { kind: SESSION_KIND, id, end: (tx, now) => store.endSession(tx, id, now) });

import { NO_LIMITS, printScope, REACH_LIMITS, type Scope } from "../../kernel/access/scope.ts";
import { AppError } from "../../kernel/errors.ts";
import { isPrintable } from "../../kernel/printable.ts";
import { type ListedToken, tokenListingFor } from "../../store/access/token-list.ts";
import * as store from "../../store/access/tokens.ts";
import * as journal from "../../store/lifecycle/journal.ts";
import { isUniqueViolation, type Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { actorOf } from "../call/initiator.ts";
import { type ListPage, type ListRequest, pageList } from "../call/listing.ts";
import { isMethodGroup, METHOD_GROUPS } from "../call/method-groups.ts";
import { isRole, ROLES, type Role } from "../call/roles.ts";
import { auditOf, revoke } from "./revocation.ts";

export type { ListedToken } from "../../store/access/token-list.ts";
export type { TokenVerdict } from "../../store/access/tokens.ts";

/** Tokens have no lifecycle, but what is done with them is audited. */
export const TOKEN_KIND = "token";

export interface CreateToken {
  readonly name: string;
  readonly roles: readonly string[];
  /** Absent: it is limited by its roles alone. */
  readonly scope?: Scope;
  /** Null: it lasts as long as tokens may. */
  readonly expiresAt: Date | null;
  /** Has no greatest age, and shares its name. */
  readonly ageless?: boolean;
}

const LONGEST_NAME = 256;

/** The answer is the only time at which the token itself is shown. */
export async function createToken(
  deps: ServiceDeps,
  caller: Caller,
  input: CreateToken,
): Promise<{ readonly id: string; readonly token: string; readonly validUntil: Date | null }> {
  const name = checkName(input.name);
  const roles = checkRoles(input.roles);
  const scope = checkScope(input.scope);
  const { expiresAt, ageless = false } = input;
  const maxAge = maxAgeOf(deps);
  const now = nowOf(deps);
  if (expiresAt !== null && expiresAt <= now) {
    throw new AppError("invalid_argument", `expires_at: ${expiresAt.toISOString()} is not in the future`, {
      field: "expires_at",
    });
  }
  if (!ageless && deps.tokenRules?.configured.includes(name)) throw nameTaken(name, "the configuration (auth.tokens)");
  const work = async (tx: Transaction) => {
    await store.giveUpName(tx, name, now, maxAge);
    const created = await store.createToken(tx, { name, roles, scope, createdBy: actorOf(caller), expiresAt, ageless });
    const data = {
      name,
      roles,
      ...(scope && { scope: printScope(scope) }),
      expires_at: expiresAt?.toISOString() ?? null,
    };
    await journal.append(tx, [{ ...auditOf(TOKEN_KIND, created.id, caller), version: 1, type: "created", data }]);
    journal.announce(tx);
    const { id, token, agedFrom } = created;
    return { id, token, validUntil: store.endOfToken({ expiresAt, agedFrom }, maxAge) };
  };
  return deps.db.transaction(work).catch((error: unknown) => {
    throw isUniqueViolation(error, store.LIVING_NAMES) ? nameTaken(name, "a token that works") : error;
  });
}

const maxAgeOf = ({ tokenRules }: ServiceDeps) => tokenRules?.maxAge ?? null;

const nameTaken = (name: string, by: string): AppError =>
  new AppError(
    "already_exists",
    `name: ${JSON.stringify(name)} is that of ${by}; the record of calls must tell callers apart`,
    {
      field: "name",
      next: "choose another name, or end the other token: millwright token list",
    },
  );

/** Filtered and sorted as every list; by name, then id, unless the request says. */
export const pageTokens = (deps: ServiceDeps, request: ListRequest): Promise<ListPage<ListedToken>> =>
  pageList(deps, tokenListingFor(maxAgeOf(deps)), request, { show: (row) => row });

/** Ends a token at once; asking again is harmless. */
export const revokeToken = (deps: ServiceDeps, caller: Caller, id: string): Promise<void> =>
  revoke(deps, caller, {
    ...{ kind: TOKEN_KIND, id },
    async end(tx, now) {
      const row = await store.revokeToken(tx, id, now);
      return row && { name: row.name, endedAt: row.revokedAt };
    },
  });

/** Whether a token lets its bearer in. */
export const verifyToken = (deps: ServiceDeps, token: string): Promise<store.TokenVerdict> =>
  store.verifyToken(deps.db, token, nowOf(deps), maxAgeOf(deps));

function checkName(text: string): string {
  const name = text.trim();
  if (name !== "" && name.length <= LONGEST_NAME && isPrintable(name)) return name;
  throw new AppError("invalid_argument", `name: 1 to ${LONGEST_NAME} printable characters are required`, {
    field: "name",
  });
}

function checkRoles(words: readonly string[]): Role[] {
  const odd = words.find((word) => !isRole(word));
  if (words.length > 0 && odd === undefined) return [...new Set(words.filter(isRole))];
  const why = odd === undefined ? "at least one is required" : `${JSON.stringify(odd.slice(0, 80))} is no role`;
  throw new AppError("invalid_argument", `roles: ${why}; roles are ${ROLES.join(", ")}`, { field: "roles" });
}

/** Null where nothing is limited. */
function checkScope(scope: Scope | undefined): Scope | null {
  if (scope === undefined) return null;
  for (const limit of REACH_LIMITS) checkWords(limit, scope[limit]);
  const methods = [...new Set(scope.methods)];
  const odd = methods.find((word) => !isMethodGroup(word));
  if (odd !== undefined)
    throw new AppError(
      "invalid_argument",
      `scope.methods: ${JSON.stringify(odd.slice(0, 80))} is no group of methods; groups are ${METHOD_GROUPS.join(", ")}`,
      { field: "scope.methods" },
    );
  const distinct = Object.fromEntries(REACH_LIMITS.map((limit) => [limit, [...new Set(scope[limit])]]));
  const checked: Scope = { ...NO_LIMITS, ...distinct, methods };
  return printScope(checked).length === 0 ? null : checked;
}

const MOST_WORDS = 1_000;

/** They need not exist: a rack, or a customer, may come later. */
function checkWords(limit: (typeof REACH_LIMITS)[number], words: readonly string[]): void {
  const field = `scope.${limit}`;
  const refuse = (why: string) => new AppError("invalid_argument", `${field}: ${why}`, { field });
  if (words.length > MOST_WORDS) throw refuse(`at most ${MOST_WORDS} are taken, got ${words.length}`);
  const odd = words.find((word) => word.trim() === "" || word.length > LONGEST_NAME || !isPrintable(word));
  if (odd !== undefined)
    throw refuse(`${JSON.stringify(odd.slice(0, 80))} must have 1 to ${LONGEST_NAME} printable characters`);
  const bare = limit === "labels" ? words.find((word) => !/^[^=]+=./.test(word)) : undefined;
  if (bare !== undefined) throw refuse(`${JSON.stringify(bare.slice(0, 80))} must be key=value`);
}

import { printScope, reachOf } from "../../kernel/access/scope.ts";
import { AppError } from "../../kernel/errors.ts";
import type { Caller } from "../../services/call/caller.ts";
import type { MethodGroup } from "../../services/call/method-groups.ts";
import { AGENT_ROLE, expandRoles, ROLES, type Role } from "../../services/call/roles.ts";
import { parseThingRule, type ThingRule } from "./thing-rule.ts";

/** Roles that may call, or `anyone`: also without credentials. */
export type Allowed = readonly Role[] | "anyone";

/**
 * Who may call what: methods as `package.Service/Method`, routes as `GET /path`. A field of a request that takes a role of its own, besides
 * that of its method, has a row `package.Service/Method field_name`.
 */
export type MethodRoles = Readonly<Record<string, Allowed>>;

/**
 * What a caller whose scope names things may do with a method: `list`, where the answer holds what is within the scope alone; else which
 * things the request names: the kind, or `{kind}` for the field that says it, and the way to their ids, such as `machine machine_ids`;
 * several parted by commas. Without a row such a caller may not call it.
 */
export type MethodThings = Readonly<Record<string, string>>;

/** Rows of one group. Of those that are in none, nobody's token with a scope may call any. */
export interface RolesTable {
  readonly group: MethodGroup | null;
  readonly roles: MethodRoles;
  readonly things?: MethodThings;
}

/** The table of roles that a server obeys. A method without a row is denied to every caller. */
export interface Access {
  /** Every method and route that has a row. */
  readonly methods: readonly string[];
  allowedFor(method: string): Allowed;
  /** What a scope must name for the method; `any`: no scope keeps anybody from it. Null: every scope does. */
  groupOf(method: string): MethodGroup | "any" | null;
  /** Undefined: nobody whose scope names things may call it, unless everybody may. */
  thingsOf(method: string): ThingRule | undefined;
  isPublic(method: string): boolean;
  /** Whether it is for the agents of fleet nodes. */
  isForAgents(method: string): boolean;
  /** Why the caller may not call the method: `permission_denied`. Undefined where one of its roles, or of those that they carry, may. */
  refusal(caller: Caller, method: string): AppError | undefined;
  /** Throws what `refusal` finds. */
  authorize(caller: Caller, method: string): void;
  /** The fields of the method's request that have a row of their own. */
  fieldsOf(method: string): readonly string[];
}

/** One table from those that the things and the shared services bring. A method with two rows is a mistake, and is refused. */
export function createAccess(tables: readonly RolesTable[]): Access {
  const rows = new Map<string, Allowed>();
  const groups = new Map<string, MethodGroup | null>();
  const things = new Map<string, ThingRule>();
  for (const { things: rules = {} } of tables)
    for (const [method, text] of Object.entries(rules)) things.set(method, parseThingRule(text));
  for (const { group, roles } of tables)
    for (const [method, allowed] of Object.entries(roles)) {
      if (rows.has(method)) throw new Error(`${method} has two rows in the tables of roles`);
      rows.set(method, allowed);
      groups.set(method, group);
    }
  const ofFields = [...rows.keys()].map((key) => key.split(" ", 2)).filter(([method = ""]) => method.includes("/"));
  const fields = new Map(
    [...Map.groupBy(ofFields, ([method = ""]) => method)].map(([method, named]) => [
      method,
      named.flatMap(([, field = ""]) => (field === "" ? [] : [field])),
    ]),
  );
  const allowedFor = (method: string): Allowed => rows.get(method) ?? [];
  const groupOf = (method: string) => (isForAll(allowedFor(method)) ? "any" : (groups.get(method) ?? null));
  const stray = [...things.keys()].find((method) => !rows.has(method));
  if (stray !== undefined) throw new Error(`${stray} has a row of things, and none of roles`);
  // A field is set in a call of its method, which names the things.
  const thingsOf = (method: string) => things.get(isField(method) ? (method.split(" ", 1)[0] ?? "") : method);
  const refusal = (caller: Caller, method: string) =>
    lacksRole(caller, method, allowedFor(method)) ??
    leavesGroups(caller, method, groupOf(method)) ??
    namesNoThings(caller, method, groupOf(method) === "any" || thingsOf(method) !== undefined);
  return {
    methods: [...rows.keys()],
    allowedFor,
    groupOf,
    thingsOf,
    isPublic: (method) => allowedFor(method) === "anyone",
    isForAgents: (method) => allowedFor(method).includes(AGENT_ROLE),
    refusal,
    authorize(caller, method) {
      const refused = refusal(caller, method);
      if (refused) throw refused;
    },
    fieldsOf: (method) => fields.get(method) ?? [],
  };
}

function lacksRole(caller: Caller, method: string, allowed: Allowed): AppError | undefined {
  if (allowed === "anyone") return undefined;
  const held = expandRoles(caller.roles);
  if (allowed.some((role) => held.has(role))) return undefined;
  const has = caller.roles.length === 0 ? "no role" : `role ${caller.roles.join(", ")}`;
  const may = allowed.length === 0 ? "no role may call it" : `it requires one of ${rolesThatMay(allowed).join(", ")}`;
  return new AppError("permission_denied", `${nameOf(caller)} (${has}) may not call ${method}; ${may}`, {
    next: "ask an administrator for a token or a mapping with one of these roles",
  });
}

/** What no role is kept from tells nothing of things: neither does any scope keep anybody from it. */
const isForAll = (allowed: Allowed): boolean => allowed === "anyone" || ROLES.every((role) => allowed.includes(role));

function leavesGroups(caller: Caller, method: string, group: MethodGroup | "any" | null): AppError | undefined {
  const { scope } = caller;
  if (scope === undefined || group === "any") return undefined;
  if (group !== null && (scope.methods.length === 0 || scope.methods.includes(group))) return undefined;
  const needs = group === null ? "no token with a scope may" : `it is in the group ${group}`;
  return new AppError(
    "permission_denied",
    `${nameOf(caller)} (scope ${printScope(scope).join(" ")}) may not call ${method}; ${needs}`,
    { next: "ask an administrator for a token with a wider scope" },
  );
}

function namesNoThings(caller: Caller, method: string, isAboutThings: boolean): AppError | undefined {
  const { scope } = caller;
  if (scope === undefined || reachOf(scope) === undefined || isAboutThings) return undefined;
  return new AppError(
    "permission_denied",
    `${nameOf(caller)} (scope ${printScope(scope).join(" ")}) may not call ${method}; no token whose scope names things may`,
    { next: "ask an administrator for a token whose scope names no things" },
  );
}

/** A row of a field, and of no route. */
export const isField = (key: string): boolean => key.includes(" ") && !key.includes(" /");

const nameOf = ({ name }: Caller): string => (name === null ? "the caller" : `'${name}'`);

/** With those that carry an allowed role: an administrator is told that `admin` will do. */
function rolesThatMay(allowed: readonly Role[]): Role[] {
  const all: readonly Role[] = [...ROLES, AGENT_ROLE];
  return all.filter((role) => [...expandRoles([role])].some((carried) => allowed.includes(carried)));
}

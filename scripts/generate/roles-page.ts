import type { Allowed } from "../../src/api/auth/access.ts";
import { AGENT_ROLE, expandRoles, ROLES, type Role } from "../../src/services/call/roles.ts";
import { HELD_METHODS } from "../../src/wiring/restore/held-methods.ts";
import { access } from "../../src/wiring/things/all-things.ts";
import { code, page, pageHead, table } from "./markdown.ts";

const OWN = [
  "admin",
  "ForgeAdminCLI",
  "operator",
  "viewer",
  "auditor",
  "credentials",
] as const satisfies readonly Role[];
const ALL: readonly Role[] = [...ROLES, AGENT_ROLE];
const PRINCIPALS = ALL.filter((role) => !OWN.some((own) => own === role));

/** Which role may call what: every method, every route, and every field that takes a role of its own. */
export function rolesPage(): string {
  const keys = access.methods.toSorted((a, b) => pathOf(a).localeCompare(pathOf(b)) || a.localeCompare(b));
  return page(
    pageHead("Roles", "the tables of roles in `src/wiring/`"),
    "Which role may call which method, over gRPC, gRPC-Web and as JSON alike, and use which route. A method without a row is denied to everybody. The roles are checked before a request is read. `test/integration/access/role-matrix.test.ts` calls every row as every role, and without credentials.",
    "A token with a scope may besides call only methods of the groups that its `methods` name (`millwright token create NAME --role ROLE --scope methods=runs,machines`). `any`: no scope keeps anybody from it. `none`: no token with a scope may call it.",
    "The scope of a token may also name things (`racks`, `clusters`, `customers`, `labels`). **Things** says what such a token may do with a method: `list`, it is shown what is within its scope; the kinds that the request names, which must be within its scope; `any`, what everybody may; nothing, it may not call it.",
    "## What roles bring along",
    table(
      ["Role", "Carries"],
      ALL.map((role) => {
        const carried = [...expandRoles([role])].filter((each) => each !== role);
        return [code(role), carried.length === 0 ? "no other" : carried.map(code).join(", ")];
      }),
    ),
    "## Held while a restored backup is under review",
    "They reach devices, or begin something that does, and answer FAILED_PRECONDITION until the review has ended (`millwright restore review`).",
    [...HELD_METHODS].map((method) => `- ${code(method)}`).join("\n"),
    [...Map.groupBy(keys, groupOf)].flatMap(([group, rows]) => [
      `## ${group}`,
      table(
        [group === ROUTES ? "Route" : "Method", ...OWN.map(code), "Others", "Group", "Things"],
        rows.map((key) => [
          shownIn(group, key),
          ...OWN.map((role) => mark(key, role)),
          othersOf(key),
          access.groupOf(key) ?? "none",
          thingsOf(key),
        ]),
      ),
    ]),
  );
}

const ROUTES = "Routes";

/** The service of a method. */
const groupOf = (key: string): string => (key.includes(" /") ? ROUTES : (key.split("/", 1)[0] ?? ""));
const pathOf = (key: string): string => (key.includes(" /") ? key.slice(key.indexOf(" ") + 1) : key);

function shownIn(group: string, key: string): string {
  if (group === ROUTES) return code(key);
  const [method = "", field] = key.slice(group.length + 1).split(" ", 2);
  return field === undefined ? code(method) : `${code(method)} with ${code(field)}`;
}

function thingsOf(key: string): string {
  const rule = access.thingsOf(key);
  if (access.groupOf(key) === "any") return "any";
  if (rule === undefined || rule === "list") return rule ?? "";
  return rule.map(({ kind }) => code(kind ?? "kind")).join(", ");
}

const may = (allowed: Allowed, role: Role): boolean =>
  allowed === "anyone" || allowed.some((each) => expandRoles([role]).has(each));
const mark = (key: string, role: Role): string => (may(access.allowedFor(key), role) ? "yes" : "");

function othersOf(key: string): string {
  const allowed = access.allowedFor(key);
  if (allowed === "anyone") return "anyone, without credentials";
  const others = PRINCIPALS.filter((role) => may(allowed, role));
  return others.length === PRINCIPALS.length - 1 ? "every role" : others.map(code).join(", ");
}

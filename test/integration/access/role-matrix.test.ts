import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { AccessService } from "../../../contract/millwright/v1/access_pb.js";
import { servedMethods } from "../../../scripts/generate/served-services.ts";
import { loadConfig } from "../../../src/config.ts";
import { NO_LIMITS, type Scope } from "../../../src/kernel/access/scope.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { METHOD_GROUPS } from "../../../src/services/call/method-groups.ts";
import { AGENT_ROLE, expandRoles, ROLES } from "../../../src/services/call/roles.ts";
import { createBoundToken, createToken, tokenFrom } from "../../../src/store/access/tokens.ts";
import { type Server, startServer } from "../../../src/wiring/server.ts";
import { access } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { type MatrixCalls, type Outcome, openMatrixCalls } from "../../support/roles/matrix-calls.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const ANONYMOUS = "no credentials";
const BY_ROLE = [...ROLES, AGENT_ROLE, ANONYMOUS] as const;
const ONE_RACK = "one rack";
/** Administrators whose tokens are limited to one group of methods, to all others, or to some things. */
const SCOPES: ReadonlyMap<string, Scope> = new Map<string, Scope>([
  ...METHOD_GROUPS.flatMap((group) => [
    [`only ${group}`, { ...NO_LIMITS, methods: [group] }] as const,
    [`all but ${group}`, { ...NO_LIMITS, methods: METHOD_GROUPS.filter((other) => other !== group) }] as const,
  ]),
  [ONE_RACK, { ...NO_LIMITS, racks: ["rack-1"] }] as const,
]);
const callersByRole = (): readonly string[] => BY_ROLE;
function callersByScope(method: string): readonly string[] {
  const group = access.groupOf(method) ?? "any";
  return [ONE_RACK, ...(group === "any" ? ["only runs", "all but runs"] : [`only ${group}`, `all but ${group}`])];
}
const NODE = "fn-matrix";

let database: TestDatabase;
let directory: string;
let server: Server;
let calls: MatrixCalls;
const tokens = new Map<string, string>(ROLES.map((role) => [role, `token of ${role}`.replaceAll(" ", "-")]));

beforeAll(async () => {
  database = await createTestDatabase();
  directory = mkdtempSync(join(tmpdir(), "millwright-matrix-"));
  const known = ROLES.map((role) => {
    const sha256 = createHash("sha256")
      .update(tokens.get(role) ?? "")
      .digest("hex");
    return { name: role, roles: [role], sha256 };
  });
  const file = join(directory, "millwright.json");
  writeFileSync(file, JSON.stringify({ auth: { tokens: known } }));
  const env = {
    MILLWRIGHT_DATABASE_URL: database.url,
    MILLWRIGHT_DATA_DIR: directory,
    MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
  };
  const { config } = loadConfig({ env, argv: ["--config", file], profile: "serve" });
  server = await startServer({ config, log: silentLog, version: "0.0.0", signal: new AbortController().signal });
  const agent = tokenFrom(randomBytes(40));
  await createBoundToken(database.db as never, agent, {
    ...{ name: NODE, roles: [AGENT_ROLE], createdBy: "test", boundTo: NODE },
  });
  tokens.set(AGENT_ROLE, agent.token);
  for (const [name, scope] of SCOPES) {
    const made = await createToken(database.db, { name, roles: ["admin"], scope, createdBy: "test" });
    tokens.set(name, made.token);
  }
  calls = openMatrixCalls(server.grpcAddress, server.httpUrl);
});
afterAll(async () => {
  calls.close();
  await server.stop();
  await database.drop();
  rmSync(directory, { recursive: true });
});

/** What the tables of roles say of a cell. */
function declared(method: string, caller: string): "let in" | "denied" | "anonymous" {
  const allowed = access.allowedFor(method);
  if (allowed === "anyone") return "let in";
  if (caller === ANONYMOUS) return "anonymous";
  const scope = SCOPES.get(caller);
  const held = expandRoles([scope ? "admin" : caller]);
  const group = access.groupOf(method);
  const isInGroups = (methods: readonly string[]) =>
    group !== null && (methods.length === 0 || methods.includes(group));
  // Only where it names things may a scope of things call: what it names, "thing-scopes.test.ts" looks at.
  const mayName = caller !== ONE_RACK || access.thingsOf(method) !== undefined;
  const isInScope = !scope || group === "any" || (isInGroups(scope.methods) && mayName);
  return isInScope && allowed.some((role) => held.has(role)) ? "let in" : "denied";
}

const seen = (outcome: Outcome) => (typeof outcome === "string" ? outcome : "let in");

interface Cell {
  readonly method: string;
  readonly caller: string;
  readonly outcome: Outcome;
}

/** Every row as every caller, some at a time. */
async function callAll<T>(
  callersOf: (method: string) => readonly string[],
  rows: readonly T[],
  of: (row: T) => { readonly method: string; readonly call: (token: string | undefined) => Promise<Outcome> },
): Promise<Cell[]> {
  const cells: Cell[] = [];
  const pending = rows.values();
  const work = async () => {
    for (const row of pending) {
      const { method, call } = of(row);
      for (const caller of callersOf(method)) cells.push({ method, caller, outcome: await call(tokens.get(caller)) });
    }
  };
  await Promise.all(Array.from({ length: 16 }, work));
  return cells;
}

function compare(cells: readonly Cell[]): void {
  const wrong = cells.filter(({ method, caller, outcome }) => seen(outcome) !== declared(method, caller));
  expect(wrong).toEqual([]);
}

/** Who is let in is told that nobody can read the request: no cell has done anything. */
const doings = (cells: readonly Cell[], harmless: readonly string[]) =>
  cells.filter(({ outcome }) => typeof outcome !== "string" && !harmless.includes(outcome.letIn));

const nameOf = ({ parent, name }: DescMethod) => `${parent.typeName}/${name}`;
const methods = servedMethods();

test("every method and every route is a row of the matrix", () => {
  const routes = access.methods.filter((key) => /^[A-Z]+ \//.test(key));
  const fields = access.methods.filter((key) => /\/\S+ /.test(key));
  expect([...methods.map(nameOf), ...fields, ...routes].sort()).toEqual([...access.methods].sort());
});

test("each method that not all roles may call is in a group, but for those that no scope allows", () => {
  const ungrouped = access.methods.filter((key) => access.groupOf(key) === null);
  expect(ungrouped.filter((key) => !key.includes("/internal/v1/")).sort()).toEqual([
    "millwright.v1.RestoreService/EndRestoreReview",
    "millwright.v1.RestoreService/GetRestoreReview",
    "millwright.v1.RestoreService/ListParkedWork",
    "millwright.v1.RestoreService/SettleParkedWork",
    "millwright.v1.SecretKeyService/ListSecretKeys",
    "millwright.v1.SecretKeyService/RotateSecretKey",
    "millwright.v1.SessionService/RevokeSession",
    "millwright.v1.SystemService/DrainReplicas",
    "millwright.v1.SystemService/ResumeReplicas",
    "millwright.v1.SystemService/SetLogLevel",
    "millwright.v1.TokenService/CreateToken",
    "millwright.v1.TokenService/RevokeToken",
  ]);
});

// Both ways at the same time takes HTTP/2.
const overHttp1 = methods.filter(({ methodKind }) => methodKind !== "bidi_streaming");
const routes = access.methods.filter((key) => /^[A-Z]+ \//.test(key));
const pathOf = (route: string) =>
  route
    .replace("*", "x")
    .replace(/\{id\}/, NODE)
    .replace(/\{\w+\}/g, "x");

describe.each([
  ["role", callersByRole],
  ["scope", callersByScope],
] as const)("by %s", (_, callersOf) => {
  test("each method may be called over gRPC as the tables say, and no other", async () => {
    const rowOf = (method: DescMethod) => ({
      method: nameOf(method),
      call: (token?: string) => calls.grpc(method, token),
    });
    const cells = await callAll(callersOf, methods, rowOf);
    compare(cells);
    expect(doings(cells, ["invalid_argument"])).toEqual([]);
  });

  test("each method may be called as JSON as the tables say, and no other", async () => {
    const rowOf = (method: DescMethod) => ({
      method: nameOf(method),
      call: (token?: string) => calls.json(method, token),
    });
    const cells = await callAll(callersOf, overHttp1, rowOf);
    compare(cells);
    expect(doings(cells, ["invalid_argument"])).toEqual([]);
  });

  test("each route may be used as the tables say, and no other", async () => {
    const rowOf = (method: string) => ({ method, call: (token?: string) => calls.rest(pathOf(method), token) });
    const cells = await callAll(callersOf, routes, rowOf);
    compare(cells);
    const owned = cells.filter(({ method }) => method.includes("/v1/") && access.allowedFor(method) !== "anyone");
    expect(doings(owned, ["HTTP 422"])).toEqual([]);
  });

  test("each field with a row of its own takes what that says, over gRPC and as JSON", async () => {
    const fields = methods.flatMap((method) =>
      access.fieldsOf(nameOf(method)).map((field) => ({ method, field, key: `${nameOf(method)} ${field}` })),
    );
    expect(fields.length).toBeGreaterThan(0);
    // Such a request names no things, and is refused to whose scope does.
    const withoutThings = (method: string) => callersOf(method).filter((caller) => caller !== ONE_RACK);
    for (const transport of ["grpc", "json"] as const)
      compare(
        await callAll(withoutThings, fields, ({ method, field, key }) => ({
          method: key,
          call: (token) => calls[transport](method, token, field),
        })),
      );
  });
});

test("a refusal names the caller, the scope and what it lacks, whatever the transport", async () => {
  const token = tokens.get("only runs") ?? "";
  const says = (method: string, group: string) =>
    `'only runs' (scope methods=runs) may not call ${method}; it is in the group ${group}`;
  const ask = async (path: string) => {
    const answer = await fetch(`${server.httpUrl}${path}`, {
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(path.includes("Service") && { method: "POST", body: "{}" }),
    });
    return (await answer.json()) as { message?: string; detail?: string };
  };
  const method = "baremetal.v1.MachineService/ListMachines";
  expect((await ask(`/${method}`)).message).toContain(says(method, "machines"));
  expect((await ask("/api/v1/nodes")).detail).toContain(says("GET /api/v1/nodes", "installs"));
});

describe("what a caller is told that it may do", () => {
  const clientOf = (caller: string) => {
    const bearing: Interceptor = (next) => (request) => {
      request.header.set("authorization", `Bearer ${tokens.get(caller)}`);
      return next(request);
    };
    return createClient(
      AccessService,
      createConnectTransport({ baseUrl: server.httpUrl, httpVersion: "1.1", interceptors: [bearing] }),
    );
  };

  test.each([...ROLES, "only runs", "all but history", ONE_RACK])("is what the tables say, for %s", async (caller) => {
    const mine = await clientOf(caller).getMyAccess({});
    const open = access.methods.filter((method) => declared(method, caller) === "let in");
    expect([...mine.methods, ...mine.routes, ...mine.fields].sort()).toEqual(open.sort());
    expect(mine.name).toBe(caller);
    expect(mine.scope?.methods ?? []).toEqual(SCOPES.get(caller)?.methods ?? []);
    expect(mine.scope?.racks ?? []).toEqual(SCOPES.get(caller)?.racks ?? []);
  });

  test("is the same method by method, with what is missing", async () => {
    expect(await clientOf("viewer").canI({ method: "ListRacks" })).toMatchObject({ allowed: true, reason: "" });
    const denied = await clientOf("viewer").canI({ method: "DELETE /api/v1/nodes/n-1" });
    expect(denied).toMatchObject({ method: "DELETE /api/v1/nodes/{id}", allowed: false });
    expect(denied.reason).toContain(
      "'viewer' (role viewer) may not call DELETE /api/v1/nodes/{id}; it requires one of",
    );
    const scoped = await clientOf("only runs")
      .canI({ method: "machines.v1.Nothing" })
      .catch((error) => error);
    expect(scoped).toMatchObject({ code: Code.InvalidArgument });
    expect(
      (
        await clientOf("only runs")
          .canI({ method: "MachineService/ListMachines" })
          .catch((e) => e)
      ).message,
    ).toMatch(/may be (baremetal|millwright)\.v1\.MachineService/);
    const field = await clientOf("ForgeAdminCLI").canI({
      method: "millwright.v1.RackService/StartRackMaintenance include_assigned",
    });
    expect(field).toMatchObject({ allowed: false, reason: expect.stringContaining("it requires one of admin") });
  });
});

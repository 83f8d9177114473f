import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DescMethod } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { servedMethods } from "../../../scripts/generate/served-services.ts";
import { loadConfig } from "../../../src/config.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { AGENT_ROLE, expandRoles, ROLES } from "../../../src/services/call/roles.ts";
import { createBoundToken, tokenFrom } from "../../../src/store/access/tokens.ts";
import { type Server, startServer } from "../../../src/wiring/server.ts";
import { access } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { type MatrixCalls, type Outcome, openMatrixCalls } from "../../support/roles/matrix-calls.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const ANONYMOUS = "no credentials";
const CALLERS = [...ROLES, AGENT_ROLE, ANONYMOUS] as const;
type MatrixCaller = (typeof CALLERS)[number];
const NODE = "fn-matrix";

let database: TestDatabase;
let directory: string;
let server: Server;
let calls: MatrixCalls;
const tokens = new Map<MatrixCaller, string>(ROLES.map((role) => [role, `token of ${role}`.replaceAll(" ", "-")]));

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
  calls = openMatrixCalls(server.grpcAddress, server.httpUrl);
});
afterAll(async () => {
  calls.close();
  await server.stop();
  await database.drop();
  rmSync(directory, { recursive: true });
});

/** What the tables of roles say of a cell. */
function declared(method: string, caller: MatrixCaller): "let in" | "denied" | "anonymous" {
  const allowed = access.allowedFor(method);
  if (allowed === "anyone") return "let in";
  if (caller === ANONYMOUS) return "anonymous";
  const held = expandRoles([caller]);
  return allowed.some((role) => held.has(role)) ? "let in" : "denied";
}

const seen = (outcome: Outcome) => (typeof outcome === "string" ? outcome : "let in");

interface Cell {
  readonly method: string;
  readonly caller: MatrixCaller;
  readonly outcome: Outcome;
}

/** Every row as every caller, some at a time. */
async function callAll<T>(
  rows: readonly T[],
  of: (row: T) => { readonly method: string; readonly call: (token: string | undefined) => Promise<Outcome> },
): Promise<Cell[]> {
  const cells: Cell[] = [];
  const pending = rows.values();
  const work = async () => {
    for (const row of pending) {
      const { method, call } = of(row);
      for (const caller of CALLERS) cells.push({ method, caller, outcome: await call(tokens.get(caller)) });
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

test("over gRPC, each role may call what the tables say, and nothing else", async () => {
  const cells = await callAll(methods, (method) => ({
    method: nameOf(method),
    call: (token) => calls.grpc(method, token),
  }));
  compare(cells);
  expect(doings(cells, ["invalid_argument"])).toEqual([]);
});

test("as JSON, each role may call what the tables say, and nothing else", async () => {
  // Both ways at the same time takes HTTP/2.
  const overHttp1 = methods.filter(({ methodKind }) => methodKind !== "bidi_streaming");
  const cells = await callAll(overHttp1, (method) => ({
    method: nameOf(method),
    call: (token) => calls.json(method, token),
  }));
  compare(cells);
  expect(doings(cells, ["invalid_argument"])).toEqual([]);
});

test("over REST, each role may use the routes that the tables say, and no other", async () => {
  const routes = access.methods.filter((key) => /^[A-Z]+ \//.test(key));
  const pathOf = (route: string) =>
    route
      .replace("*", "x")
      .replace(/\{id\}/, NODE)
      .replace(/\{\w+\}/g, "x");
  const cells = await callAll(routes, (method) => ({ method, call: (token) => calls.rest(pathOf(method), token) }));
  compare(cells);
  const owned = cells.filter(({ method }) => method.includes("/v1/") && access.allowedFor(method) !== "anyone");
  expect(doings(owned, ["HTTP 422"])).toEqual([]);
});

test("a field of a request takes its own role, over gRPC and as JSON", async () => {
  const fields = methods.flatMap((method) =>
    access.fieldsOf(nameOf(method)).map((field) => ({ method, field, key: `${nameOf(method)} ${field}` })),
  );
  expect(fields.length).toBeGreaterThan(0);
  for (const transport of ["grpc", "json"] as const)
    compare(
      await callAll(fields, ({ method, field, key }) => ({
        method: key,
        call: (token) => calls[transport](method, token, field),
      })),
    );
});

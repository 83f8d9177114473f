import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FastifyRequest } from "fastify";
import { expect } from "vitest";
import { z } from "zod";
import { createThingGuard } from "../../../src/api/auth/thing-guard.ts";
import { createFiles } from "../../../src/api/rest/files.ts";
import type { InstallRouteDeps } from "../../../src/api/rest/install-routes.ts";
import { createRestApi, type RestApiDeps, restApiRoutes } from "../../../src/api/rest/rest-api.ts";
import type { AnyRoute } from "../../../src/api/rest/route.ts";
import { createSeeds } from "../../../src/api/rest/seeds.ts";
import type { Allocator } from "../../../src/capabilities/fleet/allocator.ts";
import { Controller } from "../../../src/engine/controller.ts";
import { AppError } from "../../../src/kernel/errors.ts";
import { type Duration, hours } from "../../../src/kernel/time/duration.ts";
import { createRedfishShelfProvider } from "../../../src/providers/redfish/shelf/redfish-shelf-provider.ts";
import { seedWriter } from "../../../src/providers/seeds/seed.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import type { Caller } from "../../../src/services/call/caller.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import type { BootRules } from "../../../src/services/install/boot/boot.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import { wireHandlers } from "../../../src/wiring/handlers.ts";
import { openReportDesk } from "../../../src/wiring/installs.ts";
import { restRoutes } from "../../../src/wiring/routes.ts";
import { access, allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { RecordingLog, startApi } from "../api/api-under-test.ts";

export interface Answer<T = unknown> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: T;
}

export interface Node {
  readonly id: string;
  readonly mac_address: string;
  readonly state: string;
  readonly [field: string]: unknown;
}
export interface One<T> {
  readonly success: true;
  readonly data: T;
  readonly message: string | null;
}
export interface Many<T> {
  readonly success: true;
  readonly data: readonly T[];
  readonly total: number;
}
export interface Transition {
  readonly id: string;
  readonly from_state: string;
  readonly to_state: string;
  readonly triggered_by: string;
  readonly user_id: string | null;
  readonly comment: string | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly created_at: string;
}
export interface Page<T> {
  readonly data: readonly T[];
  readonly total: number;
}

interface CallOptions {
  /** Who calls; null: nobody. */
  readonly as?: string | null;
  readonly role?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Instead of the body as JSON. */
  readonly raw?: string | Buffer;
}

/** The REST API over HTTP on a database of its own; every answer is held against its route's declaration. */
export interface InstallsUnderTest extends Pick<TestDatabase, "db"> {
  readonly url: string;
  readonly database: TestDatabase;
  readonly deps: ServiceDeps;
  readonly log: RecordingLog;
  readonly routes: readonly AnyRoute[];
  /** Method and path of everything that is really served, in the spelling of the table of roles. */
  readonly served: ReadonlySet<string>;
  readonly boot: { -readonly [K in keyof BootRules]: BootRules[K] };
  call<T = unknown>(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer<T>>;
  /** The same, and it must succeed: what is in `data`. */
  ask<T = Node>(method: string, path: string, body?: unknown, options?: CallOptions): Promise<T>;
  register(more?: object): Promise<Node>;
  move(id: string, state: string, more?: object): Promise<Node>;
  report(mac: string, status: string | undefined, more?: object): Promise<One<Node>>;
  history(id: string, query?: string): Promise<Page<Transition>>;
  /** Puts a node into a state as if it had come there. */
  place(id: string, state: string): Promise<void>;
  close(): Promise<void>;
}

export interface InstallsOptions {
  readonly engine?: boolean;
  readonly installTimeout?: Duration;
  readonly requireTokens?: boolean;
  /** Served below `/files/`. */
  readonly filesDirectory?: string;
  readonly canErase?: boolean;
  /** Absent: no MAAS is called. */
  readonly maas?: ServiceDeps["maas"];
  /** Of fleet nodes, where the engine runs. Absent: there is none. */
  readonly allocator?: Allocator;
}

export async function startInstalls(options: InstallsOptions = {}): Promise<InstallsUnderTest> {
  const directory = mkdtempSync(join(tmpdir(), "millwright-installs-"));
  const log = new RecordingLog();
  const database = await createTestDatabase({ log });
  const { db } = database;
  const secrets = openSecretStore({ keyFile: join(directory, "secret.key") });
  const canErase = options.canErase ?? true;
  const maas = options.maas && { maas: options.maas };
  const deps: ServiceDeps = { db, stores: allStores, secrets, seedWriter, maxFindByIds: 100, canErase, ...maas };
  const installTimeout = options.installTimeout ?? hours(1);
  const boot: InstallsUnderTest["boot"] = { autoRegister: true, defaultGroupId: null, eraser: null };
  const routeDeps: InstallRouteDeps = {
    services: deps,
    installTimeout,
    boot,
    publicUrl: null,
    reports: openReportDesk(deps, { requireTokens: options.requireTokens ?? false }),
  };
  const apiDeps: RestApiDeps = {
    version: "1.2.3",
    access,
    routes: restRoutes(routeDeps),
    authenticate,
    guardThings: createThingGuard(access, deps),
    reportUnexpected: (cause) => {
      unexpected.push(cause);
      return "reference-1";
    },
  };
  const unexpected: unknown[] = [];
  const served = new Set<string>();
  const api = await startApi({
    http: async (app) => {
      app.addHook("onRoute", ({ method, url }) => {
        for (const each of [method].flat())
          if (each !== "HEAD") served.add(`${each} ${url.replace(/:(\w+)/g, "{$1}")}`);
      });
      await app.register(createRestApi(apiDeps));
      await app.register(
        createFiles({ directory: options.filesDirectory ?? null, reportUnexpected: apiDeps.reportUnexpected }),
      );
      await app.register(createSeeds({ ...routeDeps, reportUnexpected: apiDeps.reportUnexpected }));
    },
  });
  const engine = options.engine === true ? await startEngine(deps, installTimeout, log, options.allocator) : undefined;
  const routes = restApiRoutes(apiDeps);
  const call = async <T>(method: string, path: string, body?: unknown, more: CallOptions = {}): Promise<Answer<T>> => {
    const { as = "kim", role = "admin", raw } = more;
    const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    const response = await fetch(`${api.httpUrl}${path}`, {
      method,
      headers: {
        ...(as !== null && { "x-user": as, "x-role": role }),
        ...(sent !== undefined && { "content-type": "application/json" }),
        ...more.headers,
      },
      ...(sent !== undefined && { body: typeof sent === "string" ? sent : new Uint8Array(sent) }),
    });
    const text = await response.text();
    const parsed = parseJson(text);
    if (unexpected.length > 0) throw new Error(`${method} ${path} failed unexpectedly`, { cause: unexpected.shift() });
    checkAnswer(routes, { method, path, status: response.status, body: parsed });
    return { status: response.status, headers: response.headers, text, body: parsed as T };
  };
  const ask = async <T>(method: string, path: string, body?: unknown, more?: CallOptions): Promise<T> => {
    const answer = await call<One<T>>(method, path, body, more);
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer.body.data;
  };
  let count = 0;
  return {
    db,
    deps,
    log,
    routes,
    served,
    boot,
    url: api.httpUrl,
    database,
    call,
    ask,
    register(more = {}) {
      count += 1;
      const mac = `02:00:00:00:${[count >> 8, count & 255].map((part) => part.toString(16).padStart(2, "0")).join(":")}`;
      return ask<Node>("POST", "/api/v1/nodes", { mac_address: mac, ...more });
    },
    move: (id, state, more = {}) => ask<Node>("PATCH", `/api/v1/nodes/${id}/state`, { state, ...more }),
    async report(mac, status, more = {}) {
      const body = { mac_address: mac, ...(status !== undefined && { installation_status: status }), ...more };
      const answer = await call<One<Node>>("POST", "/api/v1/report", body, { as: null });
      expect(answer.status, answer.text).toBe(200);
      // The node itself is told its state alone.
      const [found] = await db.query<{ id: string }>("select id from installs where mac = $1", [
        mac.toLowerCase().replaceAll("-", ":"),
      ]);
      return { ...answer.body, data: { ...(await ask("GET", `/api/v1/nodes/${found?.id}`)), ...answer.body.data } };
    },
    history: async (id, query = "") =>
      (await call<Page<Transition>>("GET", `/api/v1/nodes/${id}/history${query}`)).body,
    async place(id, state) {
      await db.execute("update installs set state = $2, state_data = '{}', basis = basis + 1 where id = $1", [
        id,
        state,
      ]);
    },
    async close() {
      await api.close();
      await engine?.stop();
      await database.drop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Whoever the headers say; the table of roles is the real one. */
async function authenticate({ headers }: FastifyRequest, route: string): Promise<Caller> {
  const name = headers["x-user"];
  if (typeof name !== "string") {
    if (!access.isPublic(route)) throw new AppError("unauthenticated", "there are no credentials");
    return { name: null, roles: [], address: null };
  }
  const racks = headers["x-racks"];
  const scope = { methods: [], racks: [racks].flat().map(String), clusters: [], customers: [], labels: [] };
  const roles = [String(headers["x-role"])];
  const caller = { name, roles, address: "127.0.0.1", ...(racks !== undefined && { scope }) };
  access.authorize(caller, route);
  return caller;
}

async function startEngine(deps: ServiceDeps, installTimeout: Duration, log: RecordingLog, allocator?: Allocator) {
  const { db, secrets } = deps;
  const gateway = createBmcGateway();
  const provider = createRedfishShelfProvider({ gateway });
  const every = hours(1);
  const settings = { monitorEvery: every, exploreEvery: every, installTimeout, ...(allocator && { allocator }) };
  const handlers = wireHandlers({ db, secrets, provider, ...settings });
  const controller = new Controller({ db, stores: allStores, log, handlers });
  const stop = new AbortController();
  const loops = [db.listen("millwright", () => controller.nudge(), stop.signal), controller.run(stop.signal)];
  return {
    async stop() {
      stop.abort();
      await Promise.all(loops);
      await provider.close();
      gateway.close();
    },
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const problems = z.strictObject({
  detail: z
    .array(
      z.strictObject({
        type: z.string().min(1),
        loc: z.array(z.union([z.string(), z.int()])).min(1),
        msg: z.string().min(1),
      }),
    )
    .min(1),
});
const refusal = z.strictObject({ detail: z.string().min(1) });

export const routeOf = (routes: readonly AnyRoute[], method: string, path: string): AnyRoute | undefined => {
  const [plain = ""] = path.split("?", 1);
  const fits = (route: AnyRoute) => {
    const pattern = route.path.replaceAll(".", "\\.").replace(/\{[^}]+\}/g, "[^/]+");
    return route.method === method && new RegExp(`^${pattern}$`).test(plain);
  };
  // As the router does: a word of the path before a placeholder.
  return routes.filter(fits).sort((a, b) => a.path.split("{").length - b.path.split("{").length)[0];
};

interface Seen {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly body: unknown;
}

/** Never a 5xx; errors in the shape of the contract; and answers with exactly the fields that the document declares. */
function checkAnswer(routes: readonly AnyRoute[], { method, path, status, body }: Seen): void {
  const what = `${method} ${path} → ${status} ${JSON.stringify(body)?.slice(0, 500)}`;
  expect(status, what).toBeLessThan(500);
  const route = routeOf(routes, method, path);
  if (!route) return;
  if (status === 422) expect(problems.safeParse(body).success, what).toBe(true);
  else if (status >= 400) {
    expect(refusal.safeParse(body).success, what).toBe(true);
    expect([401, 403, 413, 415, ...Object.keys(route.errors ?? {}).map(Number)], what).toContain(status);
  } else {
    expect(status, what).toBe(route.status ?? 200);
    if (!("text" in route.answer)) expect((route.answer as z.ZodType).parse(body), what).toEqual(body);
  }
}

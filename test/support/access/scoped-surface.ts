import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { create, fromJson, toJson } from "@bufbuild/protobuf";
import { ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { RunService } from "../../../contract/millwright/v1/run_pb.js";
import { WatchService } from "../../../contract/millwright/v1/watch_pb.js";
import { servedMethods } from "../../../scripts/generate/served-services.ts";
import { createThingGuard, guardThingsOfCalls } from "../../../src/api/auth/thing-guard.ts";
import { createRestApi } from "../../../src/api/rest/rest-api.ts";
import { JournalTail } from "../../../src/engine/watch.ts";
import type { Scope } from "../../../src/kernel/access/scope.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { hours } from "../../../src/kernel/time/duration.ts";
import { SharedClock } from "../../../src/kernel/time/shared-clock.ts";
import { seedWriter } from "../../../src/providers/seeds/seed.ts";
import type { Caller } from "../../../src/services/call/caller.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import type { Database } from "../../../src/store/postgres/database.ts";
import { registerRoutes, restRoutes } from "../../../src/wiring/routes.ts";
import { access, allStores, allThings } from "../../../src/wiring/things/all-things.ts";
import { startApi } from "../../integration/api/api-under-test.ts";
import { createTestDatabase } from "../database.ts";

/** Every method and route over real transports, on a database on which nothing works. Who calls is an administrator with a scope. */
export interface ScopedSurface {
  readonly db: Database;
  /** What is answered over each transport that has the method, as JSON; a refusal by its message. */
  answers(key: string, request: JsonObject, scope: Scope | undefined): Promise<string[]>;
  watch(scope: Scope, signal: AbortSignal): AsyncIterator<{ readonly bookmark: boolean; readonly id: string }>;
  /** The first runs that a watch tells of, by their ids. */
  firstRuns(scope: Scope | undefined, count: number): Promise<string[]>;
  /** The journal has grown. */
  nudge(): void;
  close(): Promise<void>;
}

const callerFrom = (headers: { get(name: string): string | null }): Caller => {
  const scope = headers.get("x-scope");
  return { name: "scoped", roles: ["admin"], address: null, ...(scope && { scope: JSON.parse(scope) as Scope }) };
};

const methods = servedMethods();

export async function startScopedSurface(): Promise<ScopedSurface> {
  const directory = mkdtempSync(join(tmpdir(), "millwright-scopes-"));
  const database = await createTestDatabase();
  const { db } = database;
  const secrets = openSecretStore({ keyFile: join(directory, "secret.key") });
  const deps: ServiceDeps = { db, stores: allStores, secrets, seedWriter, maxFindByIds: 100 };
  const stop = new AbortController();
  const events = new JournalTail({ db, log: silentLog });
  const tailing = events.run(stop.signal);
  const guardThings = createThingGuard(access, deps);
  const authenticate = async (headers: { get(name: string): string | null }, method: string) => {
    const caller = callerFrom(headers);
    access.authorize(caller, method);
    return caller;
  };
  const api = await startApi({
    authenticate: (headers, _peer, method) => authenticate(headers, method),
    interceptors: [guardThingsOfCalls(guardThings)],
    routes: (router) =>
      registerRoutes(router, {
        services: deps,
        runs: { steps: new Map() } as never,
        events,
        system: { version: "1", commit: "", schema: "", startedAt: new Date(), replica: "r", clock: new SharedClock() },
        onTokenRevoked() {},
      }),
    async http(app) {
      await app.register(
        createRestApi({
          version: "1",
          access,
          routes: restRoutes(
            {
              ...{ services: deps, publicUrl: null, installTimeout: hours(1), runs: { steps: new Map() } as never },
              boot: { autoRegister: true, defaultGroupId: null, eraser: null },
              reports: undefined as never,
            },
            allThings,
          ),
          authenticate: ({ headers }, route) => authenticate(new Headers(headers as Record<string, string>), route),
          guardThings,
          reportUnexpected(cause) {
            throw cause;
          },
        }),
      );
    },
  });
  const transports: readonly Transport[] = [
    createGrpcTransport({ baseUrl: `http://${api.grpcAddress}` }),
    createConnectTransport({ baseUrl: api.httpUrl, httpVersion: "1.1", useBinaryFormat: false }),
  ];
  const headersOf = (scope: Scope | undefined): Record<string, string> =>
    scope === undefined ? {} : { "x-scope": JSON.stringify(scope) };

  async function ask(
    transport: Transport,
    key: string,
    request: JsonObject,
    scope: Scope | undefined,
  ): Promise<string> {
    const method = methods.find(({ parent, name }) => `${parent.typeName}/${name}` === key);
    if (!method) throw new Error(`there is no ${key}`);
    const message = fromJson(method.input, request);
    try {
      if (method.methodKind === "unary") {
        const answer = await transport.unary(method as never, undefined, undefined, headersOf(scope), message as never);
        return JSON.stringify(toJson(method.output, answer.message as never));
      }
      const once = (async function* () {
        yield create(method.input, message as never);
      })();
      const stream = await transport.stream(method as never, stop.signal, undefined, headersOf(scope), once as never);
      for await (const item of stream.message) return JSON.stringify(toJson(method.output, item as never));
      return "";
    } catch (error) {
      return ConnectError.from(error).rawMessage;
    }
  }

  return {
    db,
    async answers(key, request, scope) {
      if (!key.includes(" /")) return Promise.all(transports.map((transport) => ask(transport, key, request, scope)));
      const [method = "", path = ""] = key.split(" ");
      const url = `${api.httpUrl}${path.replace(/\{(?:id|node)\}/, encodeURIComponent(String(request.id ?? "x"))).replace(/\{\w+\}/g, "x")}`;
      const isRead = method === "GET" || method === "DELETE";
      const body = isRead ? {} : { body: JSON.stringify(BODIES[key] ?? {}) };
      const headers = { ...headersOf(scope), ...(!isRead && { "content-type": "application/json" }) };
      const answer = await fetch(url, { method, headers, ...body });
      return [await answer.text()];
    },
    watch(scope, signal) {
      const client = createClient(WatchService, transports[0] as Transport);
      const items = client.watch({ fromNow: true }, { signal, headers: headersOf(scope) });
      return (async function* () {
        for await (const { message } of items)
          yield { bookmark: message.case !== "event", id: message.case === "event" ? message.value.id : "" };
      })();
    },
    async firstRuns(scope, count) {
      const client = createClient(RunService, transports[0] as Transport);
      const ids: string[] = [];
      const ended = new AbortController();
      for await (const { event } of client.watchRuns(
        { children: true },
        { headers: headersOf(scope), signal: ended.signal },
      )) {
        ids.push(event?.snapshot?.runId ?? "");
        if (ids.length === count) break;
      }
      return ids.sort();
    },
    nudge: () => events.nudge(),
    async close() {
      await api.close();
      stop.abort();
      await tailing;
      await database.drop();
      rmSync(directory, { recursive: true });
    },
  };
}

/** What routes that take a body need in it before anything else is looked at. */
const BODIES: Readonly<Record<string, JsonObject>> = {
  "PATCH /api/v1/nodes/{id}/state": { state: "active" },
  "POST /api/v1/nodes/{id}/confirm-erased": { comment: "x" },
  "POST /api/v1/nodes/{id}/tags": { tag: "x" },
  "POST /api/v1/fleet/nodes/{node}/actions": { action: "cancel", request_id: "q" },
  "POST /api/v1/fleet/nodes/{node}/decommission": { mode: "soft_reset", request_id: "q" },
  "POST /api/v1/fleet/nodes/{node}/decommission/preview": { mode: "soft_reset" },
  "POST /api/v1/fleet/nodes/{node}/retire": { request_id: "q" },
};

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { z } from "zod";
import { ExplainService } from "../../contract/millwright/v1/explain_pb.js";
import { HistoryService } from "../../contract/millwright/v1/history_pb.js";
import { LifecycleService } from "../../contract/millwright/v1/lifecycle_pb.js";
import { WatchService } from "../../contract/millwright/v1/watch_pb.js";
import { defineRoute } from "../../src/api/rest/route.ts";
import { loadConfig } from "../../src/config.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { happened } from "../../src/kernel/outcome.ts";
import { actorOf, doneBy } from "../../src/services/call/initiator.ts";
import { explainAnyThing } from "../../src/services/explain/any-thing.ts";
import { createToken } from "../../src/store/access/tokens.ts";
import { create } from "../../src/store/lifecycle/create.ts";
import { lockThings } from "../../src/store/lifecycle/locks.ts";
import { recordRequest } from "../../src/store/lifecycle/requests.ts";
import { storeOf } from "../../src/store/lifecycle/things.ts";
import { type Server, startServer } from "../../src/wiring/server.ts";
import { allThings } from "../../src/wiring/things/all-things.ts";
import { defineThing, type RouteDeps } from "../../src/wiring/things/thing.ts";
import { withContext } from "../../src/wiring/things/with-context.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";
import { createWidgetTable, type Widget, widgetKey, widgetStore } from "../support/widget.ts";

/** Everything that the server learns of widgets. Nothing else in `src/` names them. */
const widget = defineThing<Widget>({
  store: widgetStore,
  handlers: () =>
    withContext<Widget, object>(
      { busy: async ({ state }) => happened("finished", { facts: { size: 7, worked: state.request ?? null } }) },
      () => ({}),
    ),
  async explain(deps, id) {
    const plain = await explainAnyThing(deps, "widget", id);
    return { ...plain, headline: `${plain.headline}, as widgets are` };
  },
  routes: ({ services }: RouteDeps) => [
    defineRoute({
      method: "POST",
      path: "/api/v1/widgets",
      tag: "widgets",
      summary: "Makes a widget and asks it to work.",
      body: z.strictObject({ id: z.string(), job: z.string() }),
      answer: z.object({ id: z.string() }),
      async handle({ body: { id, job }, caller }) {
        const store = storeOf(services.stores, "widget");
        await services.db.transaction(async (tx) => {
          await lockThings(tx, [widgetKey(id)]);
          await create(tx, store, { id, row: {}, ...doneBy(caller) });
          await recordRequest(tx, store, {
            field: "workRequest",
            ids: [id],
            initiator: actorOf(caller),
            wish: { job },
          });
        });
        return { id };
      },
    }),
  ],
  roles: { "POST /api/v1/widgets": ["operator"] },
});

let database: TestDatabase;
let directory: string;
let server: Server;
let token: { readonly [role in "operator" | "viewer"]: string };
beforeAll(async () => {
  database = await createTestDatabase();
  await createWidgetTable(database.db);
  directory = mkdtempSync(join(tmpdir(), "millwright-new-thing-"));
  const env = {
    MILLWRIGHT_DATABASE_URL: database.url,
    MILLWRIGHT_DATA_DIR: directory,
    MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
  };
  const { config } = loadConfig({ env, argv: [], profile: "serve" });
  const { signal } = new AbortController();
  server = await startServer({ config, log: silentLog, version: "0.0.0", signal, things: [...allThings, widget] });
  const tokenOf = async (role: string) =>
    (await createToken(database.db, { name: role, roles: [role], createdBy: "test" })).token;
  token = { operator: await tokenOf("operator"), viewer: await tokenOf("viewer") };
});
afterAll(async () => {
  await server.stop();
  await database.drop();
  rmSync(directory, { recursive: true });
});

const clientOf = <S extends Parameters<typeof createClient>[0]>(service: S): Client<S> =>
  createClient(service, createGrpcTransport({ baseUrl: `http://${server.grpcAddress}` }));
const viewing = () => ({ headers: { authorization: `Bearer ${token.viewer}` } });

const post = (body: object, role: keyof typeof token = "operator") =>
  fetch(`${server.httpUrl}/api/v1/widgets`, {
    method: "POST",
    headers: { authorization: `Bearer ${token[role]}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });

/** Watches a widget until it has worked and rests again. */
async function statesUntilWorked(id: string): Promise<string[]> {
  const states: string[] = [];
  const stop = new AbortController();
  const messages = clientOf(WatchService).watch(
    { kinds: ["widget"], ids: [id] },
    { ...viewing(), signal: stop.signal },
  );
  for await (const { message } of messages) {
    if (message.case !== "event" || message.value.toState === "") continue;
    states.push(message.value.toState);
    if (states.at(-1) === "idle" && states.includes("busy")) break;
  }
  stop.abort();
  return states;
}

test("a kind of thing that is only registered is made, moved, watched, explained and remembered", async () => {
  expect((await post({ id: "w-1", job: "polish" })).status).toBe(200);
  expect(await statesUntilWorked("w-1")).toEqual(["fresh", "idle", "busy", "idle"]);

  const [row] = await database.db.query<{ facts: object }>("select facts from widgets where id = 'w-1'");
  expect(row?.facts).toMatchObject({ size: 7, worked: { job: "polish", initiator: "operator" } });

  const { headline, nextCommands } = await clientOf(ExplainService).explain({ kind: "widget", id: "w-1" }, viewing());
  expect(headline).toBe("widget w-1 is idle, as widgets are");
  expect(nextCommands.map(({ command }) => command)).toContain("millwright history widget w-1");

  const { events } = await clientOf(HistoryService).listHistory({ kind: "widget", id: "w-1" }, viewing());
  expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(["created", "requested", "transition"]));
  expect(events.find(({ type }) => type === "created")?.actor).toBe("operator");
});

test("its lifecycle, its metrics and its route are shown beside those of all others", async () => {
  const { lifecycles } = await clientOf(LifecycleService).listLifecycles({}, viewing());
  expect(lifecycles.map(({ kind }) => kind)).toEqual(
    [...allThings.map(({ store }) => store.lifecycle.kind), "widget"].sort(),
  );
  const { lifecycle } = await clientOf(LifecycleService).getLifecycle({ kind: "widget" }, viewing());
  expect(lifecycle?.states.map(({ name }) => name)).toContain("busy");

  const metrics = await fetch(`${server.httpUrl}/metrics`, viewing());
  expect(await metrics.text()).toContain('millwright_things{kind="widget"');

  const document = (await (await fetch(`${server.httpUrl}/api/v1/openapi.json`)).json()) as { paths: object };
  expect(document.paths).toHaveProperty("/api/v1/widgets");
});

test("its table of roles is obeyed", async () => {
  expect((await post({ id: "w-2", job: "polish" }, "viewer")).status).toBe(403);
  expect((await fetch(`${server.httpUrl}/api/v1/widgets`, { method: "POST" })).status).toBe(401);
  expect(await database.db.query("select 1 from widgets where id = 'w-2'")).toEqual([]);
});

test("what it brings may not take the place of what others bring", async () => {
  const again = defineThing<Widget>({ store: widgetStore, roles: { "POST /api/v1/widgets": "anyone" } });
  const { config } = loadConfig({ env: { MILLWRIGHT_DATA_DIR: directory }, argv: [], profile: "serve" });
  const { signal } = new AbortController();
  const started = startServer({ config, log: silentLog, version: "0", signal, things: [widget, again] });
  await expect(started).rejects.toThrow("widget is registered twice");
});

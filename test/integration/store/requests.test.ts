// @module-tag race
import { beforeEach, expect, test } from "vitest";
import type { Move } from "../../../src/kernel/decide.ts";
import { decide, fail, follow } from "../../../src/kernel/decide.ts";
import type { JsonObject, Lifecycle, Thing } from "../../../src/kernel/lifecycle.ts";
import { commitUnits } from "../../../src/store/lifecycle/commit/commit-units.ts";
import { withdrawPending } from "../../../src/store/lifecycle/commit/end-requests.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { storeOf } from "../../../src/store/lifecycle/things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import {
  createWidgetTable,
  getWidget,
  placeWidgets,
  requestWork,
  type Widget,
  widgetKey,
  widgetLifecycle,
  widgetStores,
} from "../../support/widget.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await createWidgetTable(database.db);
});
beforeEach(async () => {
  await database.db.query("truncate claims, work, widgets, journal");
  await placeWidgets(database.db, ["w"], "idle");
});
afterAll(() => database.drop());

const lifecycle = widgetLifecycle as unknown as Lifecycle<Thing>;
const request = (job: string, ids = ["w"]) => requestWork(database.db, ids, { job });
const columns = async () => {
  const [row] = await database.db.query<{ pending: JsonObject | null; last: JsonObject | null; version: number }>(
    "select work_requested as pending, last_work_request as last, version from widgets where id = 'w'",
  );
  if (!row) throw new Error("the widget is gone");
  return row;
};
const events = async () =>
  (
    await database.db.query<{ version: number; type: string; data: JsonObject }>(
      "select version, type, data from journal where id = 'w' and type <> 'created' order by epoch, xid, seq",
    )
  ).map(({ version, type, data }) => `${version} ${type} ${data.job ?? ""} ${data.outcome ?? ""}`.trim());

/** The ends of requests that transitions told of: how, and of which. */
const endsTold = async () => {
  const rows = await database.db.query<{ ended: { outcome: string; request: { id: string } }[] }>(
    "select data -> 'ended' as ended from journal where id = 'w' and data ? 'ended' order by epoch, xid, seq",
  );
  return rows.flatMap(({ ended }) => ended.map(({ outcome, request: { id } }) => [outcome, id]));
};

async function commitMove(find: (thing: Widget) => Move | undefined): Promise<void> {
  const thing = await getWidget(database.db, "w");
  const move = find(thing);
  if (!move) throw new Error(`${thing.state.name} leads nowhere`);
  await database.db.transaction((tx) =>
    commitUnits(tx, widgetStores, [{ kind: "widget", thing, move, actor: "test" }]),
  );
}
const takeUp = () =>
  commitMove((thing) => {
    const decision = decide(lifecycle, thing);
    return decision.kind === "move" ? decision.move : undefined;
  });
const finish = () => commitMove((thing) => follow(lifecycle, thing, { owner: "handler", name: "finished" }));
const breakDown = () => commitMove((thing) => fail(lifecycle, thing, { message: "it broke" }));

test("a request is recorded with who asked and when, told, and wakes the thing", async () => {
  await database.db.query("update work set wake_at = 'infinity'");
  const id = await request("polish");
  expect(await columns()).toMatchObject({
    version: 2,
    last: null,
    pending: { id, job: "polish", initiator: "tester", requested_at: expect.any(String) },
  });
  expect(await events()).toEqual(["2 requested polish"]);
  expect(await database.db.query("select 1 from work where id = 'w' and wake_at <= now()")).toHaveLength(1);
});

test("one request on many things has one id, and each tells of it", async () => {
  await placeWidgets(database.db, ["x"], "idle");
  const id = await request("polish", ["w", "x", "w"]);
  const rows = await database.db.query<{ id: string; request: string; version: number }>(
    "select id, work_requested ->> 'id' as request, version from widgets order by id",
  );
  expect(rows).toEqual([
    { id: "w", request: id, version: 2 },
    { id: "x", request: id, version: 2 },
  ]);
});

test("a request is cleared by the transition that ends it, and kept as the last one with its outcome", async () => {
  const id = await request("polish");
  await takeUp();
  expect(await columns()).toMatchObject({ pending: { id } });
  await finish();
  expect(await columns()).toMatchObject({
    pending: null,
    last: { id, job: "polish", outcome: "completed", ended_at: expect.any(String) },
  });
});

test("a failure clears it too, with the cause", async () => {
  const id = await request("polish");
  await takeUp();
  await breakDown();
  expect(await columns()).toMatchObject({ pending: null, last: { id, outcome: "failed", message: "it broke" } });
  expect((await getWidget(database.db, "w")).state).toMatchObject({ name: "broken", cause: "it broke" });
});

test("a request that was still pending ends as superseded, and that is told before the new one", async () => {
  const first = await request("polish");
  const second = await request("paint");
  expect(await columns()).toMatchObject({
    version: 4,
    pending: { id: second, job: "paint" },
    last: { id: first, outcome: "superseded", message: "superseded by a request of tester" },
  });
  expect(await events()).toEqual(["2 requested polish", "3 request_ended polish superseded", "4 requested paint"]);
});

test("a request that is being carried out goes on to its own end, and the newer one stays pending behind it", async () => {
  const first = await request("polish");
  await takeUp();
  const second = await request("paint");
  expect(await columns()).toMatchObject({ pending: { id: second }, last: null });
  await finish();
  expect(await columns()).toMatchObject({ pending: { id: second }, last: { id: first, outcome: "completed" } });
  await takeUp();
  expect((await getWidget(database.db, "w")).state).toMatchObject({
    name: "busy",
    request: { id: second, job: "paint" },
  });
});

test("of several that came meanwhile only the last is carried out, and the others are answered", async () => {
  await request("polish");
  await takeUp();
  const second = await request("paint");
  const third = await request("pack");
  expect(await columns()).toMatchObject({ pending: { id: third }, last: { id: second, outcome: "superseded" } });
  await finish();
  expect(await columns()).toMatchObject({ pending: { id: third }, last: { outcome: "completed" } });
});

test("a transition that was worked out before a newer request came is dropped", async () => {
  await request("polish");
  const stale = await getWidget(database.db, "w");
  await request("paint");
  const decision = decide(lifecycle, stale);
  if (decision.kind !== "move") throw new Error("the widget's table has changed");
  const [result] = await database.db.transaction((tx) =>
    commitUnits(tx, widgetStores, [{ kind: "widget", thing: stale, move: decision.move, actor: "test" }]),
  );
  expect(result).toEqual({ type: "conflict" });
  expect((await getWidget(database.db, "w")).state.name).toBe("idle");
});

test("a request on a thing that goes another way ends as withdrawn, and that is told with who withdrew it", async () => {
  const id = await request("polish");
  await database.db.query("update widgets set leave_at = now()");
  await takeUp();
  expect(await columns()).toMatchObject({
    pending: null,
    last: { id, job: "polish", outcome: "withdrawn", message: "withdrawn by test (to_be_removed)" },
  });
  expect(await endsTold()).toEqual([["withdrawn", id]]);
});

test("with a thing that goes for good, what it works on and what waits behind are both withdrawn", async () => {
  const first = await request("polish");
  await takeUp();
  const second = await request("paint");
  await commitMove((thing) => follow(lifecycle, thing, { owner: "caller", name: "scrap" }));
  expect(await endsTold()).toEqual([
    ["withdrawn", first],
    ["withdrawn", second],
  ]);
});

test("nothing is withdrawn where nothing was asked for", async () => {
  await commitMove((thing) => follow(lifecycle, thing, { owner: "caller", name: "scrap" }));
  expect(await endsTold()).toEqual([]);
});

test("a caller can withdraw what waits, and leaves alone what is being carried out", async () => {
  const withdraw = () =>
    database.db.transaction(async (tx) => {
      await lockThings(tx, [widgetKey("w")]);
      const store = storeOf(widgetStores, "widget");
      await withdrawPending(tx, store, { field: "workRequest", id: "w", actor: "ann", address: null });
    });
  const first = await request("polish");
  await takeUp();
  await withdraw();
  expect(await columns()).toMatchObject({ pending: { id: first }, last: null });
  const second = await request("paint");
  await withdraw();
  expect(await columns()).toMatchObject({
    pending: null,
    last: { id: second, outcome: "withdrawn", message: "withdrawn by ann" },
  });
  expect((await events()).at(-1)).toMatch(/request_ended paint withdrawn$/);
});

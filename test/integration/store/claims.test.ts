// @module-tag race
import { beforeEach, expect, test, vi } from "vitest";
import { follow } from "../../../src/kernel/decide.ts";
import type { Lifecycle, Thing } from "../../../src/kernel/lifecycle.ts";
import { happened, waitFor } from "../../../src/kernel/outcome.ts";
import { minutes } from "../../../src/kernel/time/duration.ts";
import * as claims from "../../../src/store/lifecycle/claims/claims.ts";
import { commitUnits } from "../../../src/store/lifecycle/commit/commit-units.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import type { ThingKey } from "../../../src/store/lifecycle/things.ts";
import { applyVerb } from "../../../src/store/lifecycle/verbs.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import { wishFor } from "../../support/claims.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import {
  addWidgets,
  createWidgetTable,
  getWidget,
  placeWidgets,
  requestWork,
  widgetKey,
  widgetLifecycle,
  widgetStores,
} from "../../support/widget.ts";
import { startWidgetEngine, type WidgetEngine, type WidgetHandlers } from "../../support/widget-engine.ts";

let database: TestDatabase;
const engines: WidgetEngine[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
  await createWidgetTable(database.db);
});
beforeEach(async () => {
  await Promise.all(engines.splice(0).map((engine) => engine.stop()));
  await database.db.query("truncate claims, work, widgets, journal");
});
afterAll(async () => {
  await Promise.all(engines.splice(0).map((engine) => engine.stop()));
  await database.drop();
});

const run = (id: string): ThingKey => ({ kind: "run", id });
const shelf = widgetKey("shelf");

const acquire = (...holders: ThingKey[]) =>
  database.db.transaction(async (tx) => {
    await lockThings(tx, [shelf]);
    const wishes = holders.map((holder) => wishFor(shelf, holder, `work of ${holder.id}`));
    const waiting = await claims.acquire(tx, wishes);
    return wishes.map((wish) => waiting.get(wish)?.inTheWay[0]?.holder.id ?? "granted");
  });
const releaseAll = (...holders: ThingKey[]) =>
  database.db.transaction(async (tx) => {
    await lockThings(tx, [shelf]);
    return (await claims.releaseAll(tx, holders)).map(({ id }) => id);
  });
const queue = async () =>
  (await claims.list(database.db, [shelf])).map(({ holder, grantedAt }) => (grantedAt ? `[${holder.id}]` : holder.id));
const engine = async (handlers: WidgetHandlers) => {
  const started = await startWidgetEngine(database.db, handlers);
  engines.push(started);
  return started;
};

test("the first gets the thing, the others queue in the order in which they came and are told for whom", async () => {
  expect(await acquire(run("a"))).toEqual(["granted"]);
  expect(await acquire(run("b"), run("c"))).toEqual(["a", "a"]);
  expect(await queue()).toEqual(["[a]", "b", "c"]);
});

test("asking again keeps one's place, whether granted or waiting", async () => {
  await acquire(run("a"));
  await acquire(run("b"), run("c"));
  expect(await acquire(run("c"), run("b"), run("a"))).toEqual(["a", "a", "granted"]);
  expect(await queue()).toEqual(["[a]", "b", "c"]);
});

test("a release names whose turn it is; who waits bars those who come later", async () => {
  await acquire(run("a"));
  await acquire(run("b"));
  expect(await releaseAll(run("a"))).toEqual(["b"]);
  expect(await acquire(run("c"))).toEqual(["b"]);
  expect(await queue()).toEqual(["[b]", "c"]);
});

test("who gives up waiting leaves the queue and wakes nobody", async () => {
  await acquire(run("a"));
  await acquire(run("b"), run("c"));
  expect(await releaseAll(run("b"))).toEqual([]);
  expect(await releaseAll(run("a"))).toEqual(["c"]);
});

test("of fifty that ask at once one is granted, and each gets its turn in the order of the queue", async () => {
  const all = Array.from({ length: 50 }, (_, index) => run(`r${index}`));
  await Promise.all(all.map((holder) => acquire(holder)));
  const order = (await claims.list(database.db, [shelf])).map(({ holder }) => holder.id);
  const served: string[] = [];
  for (let next: string | undefined = order[0]; next !== undefined; ) {
    expect((await queue()).filter((name) => name.startsWith("["))).toEqual([`[${next}]`]);
    served.push(next);
    [next] = await releaseAll(run(next));
  }
  expect(new Set(served).size).toBe(50);
  expect(served).toEqual(order);
});

test("a thing that must wait for its claim says for whom, and goes on when it is free", async () => {
  await acquire(run("a"));
  await placeWidgets(database.db, ["shelf"], "idle");
  await engine({ busy: async () => happened("finished") });
  await requestWork(database.db, ["shelf"]);
  await vi.waitFor(
    async () =>
      expect(await getWidget(database.db, "shelf")).toMatchObject({
        state: { name: "idle" },
        outcome: { type: "waiting", reason: "waiting for run a (work of a), which works on it" },
      }),
    { timeout: 20_000 },
  );
  expect(await queue()).toEqual(["[a]", "shelf"]);

  await database.db.transaction(async (tx) => {
    await lockThings(tx, [shelf]);
    await work.wake(tx, await claims.releaseAll(tx, [run("a")]));
    await tx.query("select pg_notify('millwright', '')");
  });
  await vi.waitFor(
    async () =>
      expect(await getWidget(database.db, "shelf")).toMatchObject({
        workRequest: null,
        outcome: null,
        state: { name: "idle" },
      }),
    { timeout: 20_000 },
  );
  expect(await queue()).toEqual([]);
});

test("a thing holds its claim as long as it is in the state, and the next one is woken when it leaves", async () => {
  await placeWidgets(database.db, ["shelf"], "idle");
  const mayEnd = Promise.withResolvers<void>();
  await engine({
    busy: async () => {
      await mayEnd.promise;
      return happened("finished");
    },
  });
  await requestWork(database.db, ["shelf"]);
  await vi.waitFor(async () => expect(await queue()).toEqual(["[shelf]"]), { timeout: 20_000 });
  expect(await acquire(run("b"))).toEqual(["shelf"]);
  mayEnd.resolve();
  await vi.waitFor(async () => expect(await queue()).toEqual(["[b]"]), { timeout: 20_000 });
  const woken = await database.db.query("select 1 from work where kind = 'run' and id = 'b' and wake_at <= now()");
  expect(woken).toHaveLength(1);
});

test("a thing that no longer wants what it queued for leaves the queue, so that it bars nobody", async () => {
  await acquire(run("a"));
  await placeWidgets(database.db, ["shelf"], "idle");
  await engine({ idle: async () => waitFor("looking around", minutes(5)) });
  await requestWork(database.db, ["shelf"]);
  await vi.waitFor(async () => expect(await queue()).toEqual(["[a]", "shelf"]), { timeout: 20_000 });
  await acquire(run("b"));
  // withdrawn, as a caller's transaction would do it
  await database.db.transaction(async (tx) => {
    await lockThings(tx, [shelf]);
    await tx.query("update widgets set work_requested = null, version = version + 1 where id = 'shelf'");
    await work.wake(tx, [shelf]);
    await tx.query("select pg_notify('millwright', '')");
  });
  await vi.waitFor(async () => expect(await queue()).toEqual(["[a]", "b"]), { timeout: 20_000 });
  expect(await releaseAll(run("a"))).toEqual(["b"]);
});

test("another way out also ends the waiting", async () => {
  await acquire(run("a"));
  await placeWidgets(database.db, ["shelf"], "idle");
  await engine({ leaving: async () => waitFor("not yet", minutes(5)) });
  await requestWork(database.db, ["shelf"]);
  await vi.waitFor(async () => expect(await queue()).toEqual(["[a]", "shelf"]), { timeout: 20_000 });
  await database.db.transaction(async (tx) => {
    await lockThings(tx, [shelf]);
    await tx.query("update widgets set leave_at = now(), version = version + 1 where id = 'shelf'");
    await work.wake(tx, [shelf]);
    await tx.query("select pg_notify('millwright', '')");
  });
  await vi.waitFor(async () => expect(await queue()).toEqual(["[a]"]), { timeout: 20_000 });
});

test("all claims on a thing end with it, and whoever held or awaited one is woken to find it gone", async () => {
  await placeWidgets(database.db, ["shelf"], "busy");
  await acquire(run("a"));
  await acquire(shelf);
  await acquire(run("b"));
  await database.db.transaction((tx) =>
    applyVerb(tx, widgetStores, { ...shelf, owner: "caller", name: "scrap", actor: "tester" }),
  );
  expect(await queue()).toEqual([]);
  expect(await database.db.query("select kind, id from work where wake_at <= now() order by id")).toEqual([
    run("a"),
    run("b"),
  ]);
});

test("a move that must wait writes nothing but that it waits", async () => {
  await acquire(run("a"));
  await addWidgets(database.db, ["shelf"]);
  await database.db.query("update widgets set state = 'idle' where id = 'shelf'");
  const thing = await getWidget(database.db, "shelf");
  const move = follow(widgetLifecycle as unknown as Lifecycle<Thing>, thing, { owner: "other", name: "employed" });
  if (!move) throw new Error("the widget's table has changed");
  const unit = { kind: "widget", thing, move, facts: { size: 1 }, actor: "test", outcome: null };
  const [result] = await database.db.transaction((tx) => commitUnits(tx, widgetStores, [unit]));
  expect(result).toMatchObject({ type: "waiting", for: { inTheWay: [{ holder: run("a") }] } });
  expect(await getWidget(database.db, "shelf")).toMatchObject({
    version: thing.version + 1,
    state: { name: "idle" },
    facts: {},
    outcome: { type: "waiting" },
  });
});

import { beforeEach, describe, expect, test } from "vitest";
import { follow } from "../../../src/kernel/decide.ts";
import { create, move, observe, require } from "../../../src/kernel/effects.ts";
import { GONE, type JsonObject, type Lifecycle, type Thing } from "../../../src/kernel/lifecycle.ts";
import { seconds } from "../../../src/kernel/time/duration.ts";
import { machineLifecycle } from "../../../src/lifecycles/machine/lifecycle.ts";
import { commitUnits } from "../../../src/store/lifecycle/commit/commit-units.ts";
import type { Unit } from "../../../src/store/lifecycle/commit/unit.ts";
import { collectThingStores, storeOf, type ThingStore, type ThingStores } from "../../../src/store/lifecycle/things.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { createWidgetTable, placeWidgets, type Widget, widgetLifecycle, widgetStore } from "../../support/widget.ts";

const named = (name: unknown) => (typeof name === "string" ? { kind: "widget", id: name } : null);

/** A tray is part of a rack, which its rows wake but for one; and a cart waits for the tray that it is to fetch. */
const related: ThingStore<Widget> = {
  ...widgetStore,
  related: {
    rack: { of: ({ facts }) => named(facts.rack), wakes: { butFor: ["pinched"] }, loadsState: true },
    fetches: {
      of: ({ facts }) => named(facts.fetches),
      loadsState: true,
      awaits: {
        kind: "widget",
        states: ["kicked", GONE],
        waiting: async (db, others) => {
          const text = "select id from widgets where facts ->> 'fetches' = any($1)";
          return (await db.query<{ id: string }>(text, [others.map(({ id }) => id)])).map(({ id }) => id);
        },
      },
    },
  },
};
const stores: ThingStores = collectThingStores([related]);

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await createWidgetTable(database.db);
});
beforeEach(() => database.db.query("truncate claims, work, widgets, journal"));
afterAll(() => database.drop());

async function place(ids: Readonly<Record<string, JsonObject>>, state: keyof typeof widgetLifecycle.states = "idle") {
  await placeWidgets(database.db, Object.keys(ids), state);
  for (const [id, facts] of Object.entries(ids))
    await database.db.query("update widgets set facts = $2 where id = $1", [id, JSON.stringify(facts)]);
  await database.db.query("update work set wake_at = 'infinity'");
}
const load = async (id: string) => (await storeOf(stores, "widget").load(database.db, [id])).things[0] as Thing;
const unitOf = async (id: string, more: Partial<Unit> = {}): Promise<Unit> => ({
  kind: "widget",
  thing: await load(id),
  actor: "test",
  ...more,
});
const moving = async (id: string, owner: "handler" | "caller", name: string): Promise<Unit> => {
  const unit = await unitOf(id);
  const found = follow(widgetLifecycle as unknown as Lifecycle<Thing>, unit.thing, { owner, name });
  if (!found) throw new Error(`${id} knows no ${name}`);
  return { ...unit, move: found };
};
const commit = (...units: Unit[]) => database.db.transaction((tx) => commitUnits(tx, stores, units));
const dueIds = async () =>
  (await database.db.query<{ id: string }>("select id from work where wake_at <= now() order by id")).map(
    ({ id }) => id,
  );

describe("what a thing is part of", () => {
  test("gets a pass when the thing moves, whoever moves it, and none when only its facts change", async () => {
    await place({ rack: {}, tray: { rack: "rack" }, other: {} });
    await commit(await unitOf("tray", { facts: { size: 1 } }));
    expect(await dueIds()).toEqual([]);
    await commit(await moving("tray", "caller", "touch"));
    expect(await dueIds()).toEqual(["rack"]);

    await database.db.query("update work set wake_at = 'infinity'");
    await commit(await unitOf("other", { effects: [move(widgetLifecycle, "tray", "kicked")] }));
    expect(await dueIds()).toEqual(["rack", "tray"]);
  });

  test("gets none for a row of which it need not know, nor when there is nothing above", async () => {
    await place({ rack: {}, tray: { rack: "rack" }, alone: {} }, "kicked");
    await place({ other: {} });
    await commit(await unitOf("other", { effects: [move(widgetLifecycle, "tray", "pinched")] }));
    expect(await dueIds()).toEqual(["tray"]);
    await database.db.query("update work set wake_at = 'infinity'");
    await commit(await moving("alone", "handler", "settled"));
    expect(await dueIds()).toEqual([]);
  });

  test("is loaded with the thing, as far as its state goes", async () => {
    await place({ rack: {}, tray: { rack: "rack" }, orphan: { rack: "nobody" }, alone: {} });
    expect((await load("tray")).related).toEqual({
      rack: { kind: "widget", id: "rack", state: "idle" },
      fetches: null,
    });
    expect((await load("orphan")).related).toEqual({ rack: null, fetches: null });
    expect((await load("alone")).related).toEqual({ rack: null, fetches: null });
  });

  test("is woken once for many of its parts, in the statements that one of them takes", async () => {
    const trays = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`tray${at}`, { rack: "rack" }]));
    await place({ rack: {}, ...trays }, "kicked");
    const units = await Promise.all(Object.keys(trays).map((id) => moving(id, "handler", "settled")));
    expect(await commit(...units)).toEqual(units.map(() => ({ type: "committed" })));
    expect(await dueIds()).toEqual(["rack"]);
  });
});

describe("what a thing waits for", () => {
  test.each([
    [
      "comes to the state that is waited for",
      async () => unitOf("other", { effects: [move(widgetLifecycle, "tray", "kicked")] }),
    ],
    ["goes", async () => moving("tray", "caller", "scrap")],
  ])("gives it a pass when it %s", async (_, happening) => {
    await place({ tray: {}, cart: { fetches: "tray" }, empty: { fetches: "another" }, other: {} });
    await commit(await happening());
    expect(await dueIds()).toEqual(expect.arrayContaining(["cart"]));
    expect(await dueIds()).not.toContain("empty");
  });

  test("gives it none when it comes to another state, or stays", async () => {
    await place({ tray: {}, cart: { fetches: "tray" } }, "kicked");
    await commit(await moving("tray", "handler", "settled"));
    await commit(await moving("tray", "caller", "touch"));
    expect(await dueIds()).toEqual([]);
  });
});

describe("what an outcome requires of another thing's state", () => {
  const requiring = (states: readonly (keyof typeof widgetLifecycle.states)[]) => [
    require(widgetLifecycle, "tray", { states }),
    create(widgetLifecycle, "child", {}),
  ];

  test("holds when it is written, or the unit is dropped whole", async () => {
    await place({ cart: {}, tray: {} });
    const lost = await unitOf("cart", { facts: { size: 1 }, effects: requiring(["kicked", "broken"]) });
    expect(await commit(lost)).toEqual([{ type: "conflict" }]);
    expect(await database.db.query("select 1 from widgets where id = 'child'")).toEqual([]);
    const met = await unitOf("cart", { facts: { size: 1 }, effects: requiring(["idle", "broken"]) });
    expect(await commit(met)).toEqual([{ type: "committed" }]);
  });

  test("is judged by what an earlier unit of the same batch has written", async () => {
    await place({ cart: {}, tray: {}, other: {} });
    const kicking = await unitOf("other", { effects: [move(widgetLifecycle, "tray", "kicked")] });
    const lost = await unitOf("cart", { facts: { size: 1 }, effects: requiring(["idle"]) });
    expect(await commit(kicking, lost)).toEqual([{ type: "committed" }, { type: "conflict" }]);
  });
});

test("many that wake each other's parents at the same time do not wait for each other for ever", async () => {
  const trays = Array.from({ length: 40 }, (_, at) => `tray${at}`);
  await place(
    Object.fromEntries(trays.map((id, at) => [id, { rack: trays[(at + 1) % trays.length] ?? "" }])),
    "kicked",
  );
  await database.db.query("update work set wake_at = now()");
  const claimed = await work.claim(database.db, {
    owner: "a",
    kinds: ["widget"],
    limit: 100,
    leaseFor: seconds(60),
  });
  const epochs = new Map(claimed.map(({ id, epoch }) => [id, epoch]));
  const units = await Promise.all(
    trays.map(async (id) => ({ ...(await moving(id, "handler", "settled")), lease: { epoch: epochs.get(id) ?? 0 } })),
  );
  const everyFourth = (from: number) => units.filter((_, at) => at % 4 === from);
  const results = await Promise.all([0, 1, 2, 3].map((from) => commit(...everyFourth(from))));
  expect(new Set(results.flat().map(({ type }) => type))).toEqual(new Set(["committed"]));
});

describe("a machine that a run has worked on", () => {
  const machines = storeOf(allStores, "machine");
  const workOf = (id: string) =>
    database.db.query<{ id: string }>("select id from work where kind = 'machine' and id = $1 and wake_at <= now()", [
      id,
    ]);

  test.each<[string, JsonObject, boolean]>([
    ["whose node was cordoned for it", { cordoned: { cluster: "c1", node: "n1" } }, true],
    ["whose locator is lit", { locatorLit: true }, true],
    ["that has nothing of the kind", {}, false],
  ])("%s gets a pass of its own at the end: %s", async (_, facts, isWoken) => {
    const id = `m-${Object.keys(facts)[0] ?? "plain"}`.toLowerCase();
    await database.db.query(
      `insert into machines (id, provider, state, state_data, facts) values ($1, 'fake', 'PROVISIONING', '{"on_success":"READY"}', $2)`,
      [id, JSON.stringify(facts)],
    );
    await place({ run: {} });
    const both: ThingStores = new Map([...stores, ["machine", machines]]);
    const effects = [observe(machineLifecycle, id, { bootId: "new" }), move(machineLifecycle, id, "run_succeeded")];
    const unit = await unitOf("run", { effects });
    await database.db.transaction((tx) => commitUnits(tx, both, [unit]));
    expect(await workOf(id)).toHaveLength(isWoken ? 1 : 0);
    expect(
      await database.db.query("select type, version from journal where kind = 'machine' and id = $1", [id]),
    ).toEqual([{ type: "transition", version: 2 }]);
  });
});

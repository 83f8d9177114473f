import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { move } from "../../../src/kernel/effects.ts";
import { happened, nothingToDo } from "../../../src/kernel/outcome.ts";
import * as claims from "../../../src/store/lifecycle/claims/claims.ts";
import { wishFor } from "../../support/claims.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { createWidgetTable, getWidget, placeWidgets, widgetKey, widgetLifecycle } from "../../support/widget.ts";
import { startWidgetEngine, type WidgetEngine, type WidgetHandlers } from "../../support/widget-engine.ts";

let database: TestDatabase;
let engine: WidgetEngine | undefined;
beforeAll(async () => {
  database = await createTestDatabase();
  await createWidgetTable(database.db);
});
beforeEach(() => database.db.query("truncate claims, work, widgets, journal"));
afterEach(() => engine?.stop());
afterAll(() => database.drop());

const start = async (handlers: WidgetHandlers) => {
  engine = await startWidgetEngine(database.db, handlers);
  return engine;
};
const widget = (id: string) => getWidget(database.db, id);
const eventually = (check: () => Promise<unknown>) => vi.waitFor(check, { timeout: 30_000, interval: 10 });
const pathOf = async (id: string) =>
  (
    await database.db.query<{ version: number; from_state: string; to_state: string | null; actor: string }>(
      "select version, from_state, to_state, actor from journal where id = $1 and from_state is not null order by epoch, xid, seq",
      [id],
    )
  ).map(({ version, from_state, to_state, actor }) => `${version} ${from_state} → ${to_state} by ${actor}`);

test("a handler may report two events, which are written at once and handled once", async () => {
  await placeWidgets(database.db, ["w"], "kicked");
  const { handled } = await start({
    kicked: async () => happened("settled", { facts: { size: 1 }, followedBy: [{ event: "dismissed" }] }),
    leaving: async () => happened("left"),
  });
  await eventually(() => expect(widget("w")).rejects.toThrow("does not exist"));
  expect(await pathOf("w")).toEqual([
    "2 kicked → idle by handler of kicked",
    "3 idle → leaving by handler of kicked",
    "4 leaving → null by handler of leaving",
  ]);
  expect(handled).toEqual(["w kicked", "w leaving"]);
  const [first, second] = await database.db.query<{ xid: string }>(
    "select xid::text from journal where id = 'w' and from_state is not null order by epoch, xid, seq",
  );
  expect(first?.xid).toBe(second?.xid);
});

test("a unit whose effect must wait is tried again by itself until the other is free, and never set aside", async () => {
  await placeWidgets(database.db, ["w", "other"], "idle");
  const holder = { kind: "run", id: "r1" };
  await database.db.transaction((tx) => claims.acquire(tx, [wishFor(widgetKey("other"), holder, "repave")]));
  await database.db.query("update widgets set state = 'kicked' where id = 'w'");
  const { quarantined, handled } = await start({
    kicked: async () => happened("settled", { effects: [move(widgetLifecycle, "other", "employed")] }),
    busy: async () => nothingToDo(null),
  });
  const reason = "waiting for run r1 (repave), which works on widget other";
  await eventually(async () => {
    expect(await widget("w")).toMatchObject({ state: { name: "kicked" }, outcome: { type: "waiting", reason } });
    expect(handled.filter((one) => one === "w kicked").length).toBeGreaterThanOrEqual(2);
  });
  const [work] = await database.db.query<{ failures: number; last_error: string | null }>(
    "select failures, last_error from work where id = 'w'",
  );
  expect(work).toEqual({ failures: 0, last_error: null });
  await database.db.transaction((tx) => claims.releaseAll(tx, [holder]));
  await eventually(async () => expect((await widget("w")).state.name).toBe("idle"));
  expect((await widget("other")).state.name).toBe("busy");
  expect(quarantined.size).toBe(0);
});

import { expect, test, vi } from "vitest";
import { runSweep, sweep } from "../../../src/engine/sweep.ts";
import { type Log, silentLog } from "../../../src/kernel/log.ts";
import { happened } from "../../../src/kernel/outcome.ts";
import { milliseconds } from "../../../src/kernel/time/duration.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { createWidgetTable, getWidget, placeWidgets, widgetStores } from "../../support/widget.ts";
import { startWidgetEngine } from "../../support/widget-engine.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await createWidgetTable(database.db);
});
afterAll(() => database.drop());

test("a thing that lost its wake-up, by whatever mistake, is found, said and carried on with", async () => {
  await placeWidgets(database.db, ["stranded", "resting"], "kicked");
  await database.db.query("update widgets set state = 'idle' where id = 'resting'");
  await database.db.query("update work set wake_at = 'infinity'");
  const warnings: object[] = [];
  const log: Log = { ...silentLog, warn: (fields) => warnings.push(fields) };
  await sweep(database.db, widgetStores, log);
  expect(warnings).toEqual([{ kind: "widget", woken: 1 }]);
  const engine = await startWidgetEngine(database.db, { kicked: async () => happened("settled") });
  await vi.waitFor(async () => expect((await getWidget(database.db, "stranded")).state.name).toBe("idle"), {
    timeout: 20_000,
  });
  await engine.stop();
});

test("the sweep goes on after trouble, and ends when it is told to", async () => {
  const stop = new AbortController();
  const warnings: string[] = [];
  const log: Log = { ...silentLog, warn: (_, message) => warnings.push(message) };
  const broken = new Map([["ghost", { ...widgetStores.get("widget"), table: "no_such_table" }]]);
  const stores = broken as unknown as typeof widgetStores;
  const running = runSweep({ db: database.db, stores, log, every: milliseconds(5) }, stop.signal);
  await vi.waitFor(() => expect(warnings.length).toBeGreaterThan(2), { timeout: 20_000 });
  stop.abort();
  await running;
});

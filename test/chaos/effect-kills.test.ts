import { expect, onTestFinished, test } from "vitest";
import * as claims from "../../src/store/lifecycle/claims/claims.ts";
import type { Database } from "../../src/store/postgres/database.ts";
import { dumpTables } from "../integration/api/forge-under-test.ts";
import { wishFor } from "../support/claims.ts";
import { createTestDatabase } from "../support/database.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { startProgram } from "../support/processes/programs.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";
import { createWidgetTable, getWidget, placeWidgets, widgetKey } from "../support/widget.ts";

/** Kill -9 in the middle of a unit with effects: all of it is there, or nothing. */
const KILLS = [
  "transitions:locked",
  "journal:appended",
  "transitions:journaled",
  "claims:wished",
  "create:inserted",
  "requests:recorded",
  "changes:written",
  "health-reports:put",
];

let bench: ProcessBench;
beforeAll(() => {
  bench = openProcessBench();
});
afterAll(() => bench.close());

const commit = async (url: string, failPoint = "") => {
  const process_ = await startProgram(bench, {
    program: "effect-process.ts",
    args: [url],
    env: { MILLWRIGHT_FAILPOINT: failPoint },
  });
  return { ...(await process_.exited), said: process_.stdout().trim(), transcript: process_.transcript() };
};

async function prepare() {
  const database = await createTestDatabase();
  onTestFinished(database.drop);
  const { db } = database;
  await createWidgetTable(db);
  await placeWidgets(db, ["tray", "shelf", "sleeper"], "idle");
  await placeWidgets(db, ["rack"], "kicked");
  await db.query("update work set wake_at = 'infinity'");
  return database;
}

const pathOf = async (db: Database, id: string) =>
  (
    await db.query<{ version: number; type: string; to_state: string | null }>(
      "select version, type, to_state from journal where id = $1 and type <> 'created' order by epoch, xid, seq",
      [id],
    )
  ).map(({ version, type, to_state }) => `${version} ${type} ${to_state}`);

test.each(KILLS)(
  "a process killed at %s has written nothing of its unit, and the next one writes all of it",
  async (at) => {
    const { db, url } = await prepare();
    const before = await dumpTables(db);
    const victim = await commit(url, at);
    expect(victim, victim.transcript).toMatchObject({ code: null, signal: "SIGKILL" });
    expect(await dumpTables(db)).toEqual(before);

    const again = await commit(url);
    expect(again, again.transcript).toMatchObject({ code: 0, said: "committed" });
    expect(await pathOf(db, "rack")).toEqual(["2 transition idle"]);
    expect(await pathOf(db, "tray")).toEqual(["2 transition kicked", "3 transition busy"]);
    expect(await pathOf(db, "shelf")).toEqual(["2 requested null", "3 health_report_changed null"]);
    expect(await getWidget(db, "child")).toMatchObject({ state: { name: "fresh" } });
    expect(await db.query("select source from health_reports where id = 'shelf'")).toEqual([{ source: "rack" }]);
    const due = await db.query<{ id: string }>("select id from work where wake_at <= now() order by id");
    expect(due.map(({ id }) => id)).toEqual(["child", "shelf", "sleeper", "tray"]);
  },
);

test("a process killed while its unit has to wait has written nothing, and the next one waits", async () => {
  const { db, url } = await prepare();
  const holder = { kind: "run", id: "r1" };
  await db.transaction((tx) => claims.acquire(tx, [wishFor(widgetKey("tray"), holder, "repave")]));
  const before = await dumpTables(db);
  for (const at of ["transitions:locked", "transitions:journaled"]) {
    expect(await commit(url, at)).toMatchObject({ signal: "SIGKILL" });
    expect(await dumpTables(db)).toEqual(before);
  }
  expect(await commit(url)).toMatchObject({ said: "waiting" });
  expect(await getWidget(db, "rack")).toMatchObject({
    state: { name: "kicked" },
    outcome: { type: "waiting", reason: "waiting for run r1 (repave), which works on widget tray" },
  });
  await db.transaction((tx) => claims.releaseAll(tx, [holder]));
  expect(await commit(url)).toMatchObject({ said: "committed" });
  expect(await pathOf(db, "tray")).toEqual(["2 transition kicked", "3 transition busy"]);
});

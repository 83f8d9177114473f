import { beforeEach, expect, test } from "vitest";
import { createCommitter, type Submission } from "../../../src/engine/committer.ts";
import { move, observe } from "../../../src/kernel/effects.ts";
import { seconds } from "../../../src/kernel/time/duration.ts";
import { commitUnits } from "../../../src/store/lifecycle/commit/commit-units.ts";
import type { Unit } from "../../../src/store/lifecycle/commit/unit.ts";
import { readLockBudget } from "../../../src/store/lifecycle/locks.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import type { Database } from "../../../src/store/postgres/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type StockServer, startStockServer } from "../../support/stock-server.ts";
import {
  createWidgetTable,
  placeWidgets,
  type Widget,
  widgetLifecycle,
  widgetStore,
  widgetStores,
} from "../../support/widget.ts";

let server: StockServer;
let db: Database;
beforeAll(async () => {
  server = await startStockServer();
  db = server.db;
  await createWidgetTable(db);
});
afterAll(() => server.stop());
beforeEach(() => db.query("truncate claims, work, widgets, journal"));

const names = (count: number, prefix: string) => Array.from({ length: count }, (_, index) => `${prefix}${index}`);

async function place(worked: readonly string[], others: readonly string[]): Promise<Map<string, Widget>> {
  await placeWidgets(db, worked, "idle");
  await db.query("insert into widgets (id, state) select unnest($1::text[]), 'idle'", [others]);
  const { things } = await widgetStore.load(db, worked);
  return new Map(things.map((thing) => [thing.id, thing]));
}

async function submissionsFor(units: readonly Unit[]): Promise<Submission[]> {
  const claimed = await work.claim(db, { owner: "a", kinds: ["widget"], limit: 100_000, leaseFor: seconds(60) });
  const claims = new Map(claimed.map((one) => [one.id, one]));
  return units.map((unit) => {
    const one = claims.get(unit.thing.id) as work.ClaimedWork;
    const release = { after: null, failures: 0, error: null };
    return { claimed: one, unit: { ...unit, lease: { epoch: one.epoch } }, release };
  });
}

const committer = () =>
  createCommitter({ db, stores: widgetStores, most: 500, atOnce: 2, claimRecheck: seconds(30), onDue() {} });

test("a batch takes a share of the table alone", async () => {
  expect(await readLockBudget(db)).toBe(640);
});

test("outcomes that together touch more things than the table has room for are all written", async () => {
  const parents = names(500, "rack");
  const childrenOf = (parent: string) => names(40, `${parent}-tray`);
  const found = await place(parents, parents.flatMap(childrenOf));
  const units = parents.map(
    (parent): Unit => ({
      kind: "widget",
      thing: found.get(parent) as Widget,
      facts: { size: 1 },
      actor: "test",
      effects: childrenOf(parent).map((child) => observe(widgetLifecycle, child, { size: 2 })),
    }),
  );
  const atOnce = db.transaction((tx) => commitUnits(tx, widgetStores, units));
  await expect(atOnce).rejects.toMatchObject({ kind: "exhausted" }); // the test would notice

  const { submit } = committer();
  const results = await Promise.all((await submissionsFor(units)).map(submit));
  expect(new Set(results.map(({ type }) => type))).toEqual(new Set(["committed"]));
  expect(await db.query(`select 1 from widgets where facts ->> 'size' = '2'`)).toHaveLength(20_000);
});

test("a single outcome that touches more than its share is written alone", async () => {
  const children = names(1_500, "tray");
  const found = await place(["rack", "neighbour"], children);
  const rack: Unit = {
    kind: "widget",
    thing: found.get("rack") as Widget,
    facts: { size: 1 },
    actor: "test",
    effects: children.map((child) => move(widgetLifecycle, child, "kicked")),
  };
  const neighbour: Unit = {
    kind: "widget",
    thing: found.get("neighbour") as Widget,
    facts: { size: 1 },
    actor: "test",
  };
  const { submit } = committer();
  const results = await Promise.all((await submissionsFor([neighbour, rack])).map(submit));
  expect(results).toEqual([{ type: "committed" }, { type: "committed" }]);
  expect(await db.query("select 1 from widgets where state = 'kicked'")).toHaveLength(1_500);
});

test("a single outcome that touches more than the table has room for is refused before it takes any of it, and says so", async () => {
  const children = names(20_000, "tray");
  const found = await place(["rack", "neighbour"], children);
  const unitOf = (id: string, effects: Unit["effects"] = []): Unit => ({
    kind: "widget",
    thing: found.get(id) as Widget,
    facts: { size: 1 },
    actor: "test",
    effects,
  });
  const everyChild = children.map((child) => move(widgetLifecycle, child, "kicked"));
  const { submit } = committer();
  const submissions = await submissionsFor([unitOf("rack", everyChild), unitOf("neighbour")]);
  const [rack, neighbour] = await Promise.all(submissions.map(submit));
  const error =
    "its outcome cannot be written: 20001 things would be changed together, and the database has room for 6400 locks: change fewer at once, or raise its max_locks_per_transaction";
  expect(rack).toEqual({ type: "quarantined", error });
  expect(neighbour).toEqual({ type: "committed" });
  expect(await db.query("select 1 from widgets where state = 'kicked'")).toEqual([]);
  // It is tried again later, and everybody who looks at it learns why.
  const [planned] = await work.findWork(db, [{ kind: "widget", id: "rack" }]);
  expect(planned).toMatchObject({ lastError: error, failures: 1, leaseUntil: null, wakeAt: expect.any(Date) });
});

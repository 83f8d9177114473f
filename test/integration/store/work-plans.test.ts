// @module-tag race
import { expect, test } from "vitest";
import { milliseconds, seconds } from "../../../src/kernel/time/duration.ts";
import * as journal from "../../../src/store/lifecycle/journal.ts";
import * as work from "../../../src/store/lifecycle/work.ts";
import type { Queryable } from "../../../src/store/postgres/database.ts";
import { powerShelfStore } from "../../../src/store/power-shelf/power-shelves.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { plansOf as plansOfStatements } from "../../support/query-plans.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const ROWS = 100_000;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const { db } = database;
  await db.query(
    `insert into power_shelves (id, name, bmc_mac, bmc_address, bmc_port, state)
     select 'ps-' || n, 'shelf ' || n, lpad(to_hex(n), 12, '0'), '10.0.0.1', 443, 'ready' from generate_series(1, $1) n`,
    [ROWS],
  );
  await db.query(
    `insert into expected_power_shelves (bmc_mac, bmc_username, shelf_serial_number, state, facts)
     select lpad(to_hex(n), 12, '0'), 'root', 'S' || n, 'linked', jsonb_build_object('powerShelfId', 'ps-' || n) from generate_series(1, $1) n`,
    [ROWS],
  );
  await db.query(
    `insert into work (kind, id, wake_at) select 'power_shelf', 'ps-' || n, now() + n * interval '1 ms' - interval '1 s' from generate_series(1, $1) n`,
    [ROWS],
  );
  await db.query(
    `insert into journal (epoch, xid, kind, id, version, type, actor)
     select 1, (n / 10 + 3)::text::xid8, 'power_shelf', 'ps-' || n % 1000, n, 'facts_changed', 'test' from generate_series(1, $1) n`,
    [ROWS],
  );
  await db.query("analyze");
});
afterAll(() => database.drop());

const plansOf = (call: (db: Queryable) => Promise<unknown>) => plansOfStatements(database.db, call);

const held = Array.from({ length: 200 }, (_, index) => ({
  kind: "power_shelf",
  id: `ps-${index * 7 + 1}`,
  epoch: 1,
  failures: 0,
}));
const kinds = ["power_shelf", "expected_power_shelf"];
const history = { key: { kind: "power_shelf", id: "ps-7" }, limit: 50, types: [] };

test.each<[string, (db: Queryable) => Promise<unknown>]>([
  ["claiming", (db) => work.claim(db, { owner: "a", kinds, limit: 250, leaseFor: seconds(22) })],
  ["asking when the next thing falls due", (db) => work.untilNextDue(db, kinds)],
  ["waking", (db) => work.wake(db, held)],
  ["renewing", (db) => work.renew(db, { owner: "a", held: held.map((one) => ({ ...one, leaseFor: seconds(22) })) })],
  ["fencing", (db) => work.fence(db, held)],
  [
    "releasing",
    (db) =>
      work.release(
        db,
        held.map((one) => ({ ...one, after: milliseconds(5), error: null })),
      ),
  ],
  ["forgetting", (db) => work.forget(db, held)],
  [
    "loading",
    (db) =>
      powerShelfStore.load(
        db,
        held.map(({ id }) => id),
      ),
  ],
  ["following the journal from its start", (db) => journal.readAfter(db, "1.0.0", 500)],
  ["following the journal from near its end", (db) => journal.readAfter(db, `1.${ROWS / 10 - 5}.0`, 500)],
  ["the newest history of a thing", (db) => journal.listHistory(db, { ...history, newestFirst: true, after: null })],
  ["a later page of it", (db) => journal.listHistory(db, { ...history, newestFirst: true, after: "1.5000.1" })],
  ["the oldest history of a thing", (db) => journal.listHistory(db, { ...history, newestFirst: false, after: null })],
])("%s reads only what it needs of 100,000 rows", async (_, call) => {
  const plan = await plansOf(call);
  expect(plan).not.toMatch(/Seq Scan on (work|journal|power_shelves|expected_power_shelves)\b/);
  expect(plan).toMatch(/Index/);
});

test("the order of claims and of the journal comes from the index, not from sorting everything", async () => {
  const claiming = await plansOf((db) => work.claim(db, { owner: "a", kinds, limit: 250, leaseFor: seconds(22) }));
  expect(claiming).toMatch(/Index Scan using work_due/);
  expect(claiming).not.toMatch(/Sort/);
  const following = await plansOf((db) => journal.readAfter(db, "1.0.0", 500));
  expect(following).not.toMatch(/Sort/);
});

test("what an open transaction holds back is not read by the followers that wait for it", async () => {
  await database.db.transaction(async (tx) => {
    await tx.query("select pg_current_xact_id()");
    const plan = await plansOf((db) => journal.readAfter(db, "1.0.0", 500));
    expect(plan).toMatch(/Index Cond:.*ROW\(epoch, xid\) < /);
  });
});

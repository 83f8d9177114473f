// @module-tag race
import { expect, test } from "vitest";
import type { FieldRef } from "../../../src/kernel/filter/fields.ts";
import type { FieldValue } from "../../../src/kernel/filter/filter.ts";
import {
  aboveSlaSql,
  countLiveStates,
  dwellingSql,
  listAttention,
  troubledSql,
} from "../../../src/store/lifecycle/attention.ts";
import { storeOf } from "../../../src/store/lifecycle/things.ts";
import { machineListing } from "../../../src/store/machine/machine-list.ts";
import type { Database } from "../../../src/store/postgres/database.ts";
import type { Listing } from "../../../src/store/postgres/listing.ts";
import { allStores, allThings } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { LISTED_ROWS, type ListedKind } from "../../support/listed-rows.ts";
import { plansOf } from "../../support/query-plans.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

type AnyListing = Listing<string, unknown>;
const LISTED = allThings.flatMap(({ store, listing }) =>
  listing !== undefined && listing.name in LISTED_ROWS
    ? [[store.lifecycle.kind, listing as unknown as AnyListing] as const]
    : [],
);

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  for (const [, { name }] of LISTED) await LISTED_ROWS[name as ListedKind](database.db, 1, 60);
});
afterAll(() => database.drop());

const texts = (value: FieldValue): string[] => {
  const all = Array.isArray(value) ? [...new Set(value.map(String))] : value === null ? [] : [String(value)];
  return all.length > 0 ? all : [""];
};

test.each(LISTED)("%s are counted as their fields say in memory, by every field", async (kind, listing) => {
  const now = new Date();
  const things = await listing.collect(
    database.db,
    { filter: [], order: listing.completeOrder([]), limit: 1_000 },
    (thing) => thing,
  );
  expect(things.length).toBeGreaterThan(10);
  for (const [field, { type, of }] of Object.entries(listing.fields)) {
    if (type === "time" || field === "stuck" || field === "urgency") continue;
    const by: FieldRef = type === "labels" ? { field, key: "env" } : { field };
    const expected = new Map<string, number>();
    for (const thing of things)
      for (const value of texts(of(thing, by.key ?? "", now))) expected.set(value, (expected.get(value) ?? 0) + 1);
    const counted = await listing.tally(database.db, { filter: [], by: [by] }, 1_000);
    expect(new Map(counted.map(({ values, things: some }) => [values[0], some])), `${kind} by ${field}`).toEqual(
      expected,
    );
    expect(counted.map(({ things: some }) => some)).toEqual(
      counted.map(({ things: some }) => some).toSorted((a, b) => b - a),
    );
  }
});

test.each(LISTED)("of %s every group says how many are late, and since when", async (kind, listing) => {
  const store = storeOf(allStores, kind);
  const [state] = Object.entries(listing.fields).find(([, { sql }]) => sql === "t.state") ?? [];
  if (state === undefined) return;
  const groups = (await listing.tally(database.db, { filter: [], by: [{ field: state }] }, 100)).map(
    ({ values }) => values,
  );
  const of = { applies: dwellingSql(store), late: aboveSlaSql(store), troubled: troubledSql(store), groups };
  for (const { values, aboveSla, inTrouble, oldestSince, p50Seconds, p95Seconds } of await listing.dwell(
    database.db,
    { filter: [], by: [{ field: state }] },
    of,
  )) {
    const [row] = await database.db.query<{ late: number; troubled: number; oldest: Date }>(
      `select count(*) filter (where ${of.late})::int as late, count(*) filter (where ${of.troubled})::int as troubled, min(t.state_since) as oldest
         from ${store.table} t where t.state = $1 and ${of.applies}`,
      [values[0]],
    );
    expect({ aboveSla, inTrouble, oldestSince }).toEqual({
      aboveSla: row?.late,
      inTrouble: row?.troubled,
      oldestSince: row?.oldest,
    });
    expect(p50Seconds).toBeLessThanOrEqual(p95Seconds);
  }
});

test.each([...allStores.keys()])(
  "what needs somebody among things of kind %s is asked in SQL that the database takes",
  async (kind) => {
    const rows = await listAttention(database.db, storeOf(allStores, kind), { limit: 10 });
    for (const { things, ids } of rows) expect(ids.length).toBe(Math.min(things, 5));
  },
);

/** Rows that somebody older might not see keep an index from answering alone: the server's own autovacuum, when it analyzes meanwhile. */
const vacuumWhole = (db: Database, table: string): Promise<unknown> =>
  eventually(
    async () => {
      await db.query(`vacuum analyze ${table}`);
      const [seen] = await db.query<{ whole: boolean }>(
        "select relallvisible >= relpages * 0.99 as whole from pg_class where oid = $1::regclass",
        [table],
      );
      return seen?.whole === true;
    },
    { what: `everybody sees all of ${table}` },
  );

test("among 100,000 machines and as many runs what needs somebody is found without reading all of them", async () => {
  const { db } = database;
  // Without their triggers: what is searched for is not asked here, and a busy computer takes minutes to write it for so many.
  for (const table of ["machines", "runs"]) await db.execute(`alter table ${table} disable trigger user`);
  await db.execute(
    `insert into machines (id, provider, state, rack, conditions)
     select 'many-' || i, 'fake', 'READY', 'rack-' || i % 5000,
            case when i % 5000 = 0 then '[{"type":"Degraded","status":true,"reason":"r","message":"","last_transition":"2026-01-01T00:00:00.000Z"}]' else '[]' end::jsonb
       from generate_series(1, 100000) i`,
  );
  await db.execute(
    `insert into runs (id, target_kind, target_id, machine_id, request_id, fingerprint, type, plan_id, plan, job_id, initiator, state, created_at)
     select 'many-' || i, 'machine', 'none-' || i, 'none-' || i, 'r', '', 'REBOOT', 'plan/reboot', '{}', 'many-' || i, 'test',
            case when i % 5000 = 0 then 'FAILED' else 'SUCCEEDED' end, now() - i * interval '1 second' from generate_series(1, 100000) i`,
  );
  for (const table of ["machines", "runs"]) await vacuumWhole(db, table);
  for (const kind of ["machine", "run"]) {
    const { table } = storeOf(allStores, kind);
    const attention = await plansOf(db, (explain) => listAttention(explain, storeOf(allStores, kind), { limit: 100 }));
    expect(attention).not.toMatch(new RegExp(`Seq Scan on ${table} t`));
    const states = await plansOf(db, (explain) => countLiveStates(explain, storeOf(allStores, kind)));
    expect(states).not.toMatch(/Seq Scan/);
  }
  const byState = await plansOf(db, (explain) =>
    machineListing.tally(explain, { filter: [], by: [{ field: "phase" }] }, 100),
  );
  expect(byState).toMatch(/Index Only Scan using machines_by_/);
});

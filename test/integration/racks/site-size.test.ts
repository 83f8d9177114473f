import { expect, test } from "vitest";
import { storeOf } from "../../../src/store/lifecycle/things.ts";
import type { Queryable, Statement } from "../../../src/store/postgres/database.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** A site of 250 racks with the runs of one maintenance of each: what one pass reads must not grow with it. */
const RACKS = 250;
const [TRAYS, SWITCHES, SHELVES] = [18, 9, 8];

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const { db } = database;
  const each = (count: number) =>
    `from generate_series(1, ${RACKS}) r cross join generate_series(1, ${count}) n cross join lateral (select r * 100 + n as at) k`;
  await db.query(
    `insert into racks (id, name, state) select 'rack-' || r, 'rack', 'ready' from generate_series(1, ${RACKS}) r`,
  );
  await db.query(
    `insert into machines (id, labels, provider, serial, macs, rack, slot, state, conditions)
     select 'm-' || at, '{}', 'datacenter', 'SN' || at, array['06:' || at], 'rack-' || r, n::text, 'READY', '[]' ${each(TRAYS)}`,
  );
  await db.query(`insert into host_reprovisions (id, state) select 'm-' || at, 'ready' ${each(TRAYS)}`);
  const columns = "id, name, rack_id, bmc_mac, bmc_address, bmc_port, state, facts";
  const values = (prefix: string) =>
    `'${prefix}' || at, 'device', 'rack-' || r, '${prefix}:' || at, '10.0.0.1', 443, 'ready', jsonb_build_object('serial', at, 'reportedNvosAddress', '10.0.0.2')`;
  await db.query(
    `insert into switches (${columns}, nvos_macs) select ${values("sw")}, array['16:' || at] ${each(SWITCHES)}`,
  );
  await db.query(`insert into power_shelves (${columns}) select ${values("ps")} ${each(SHELVES)}`);
  await db.query(
    `insert into expected_switches (id, name, rack_id, bmc_mac, bmc_username, switch_serial_number, state, facts)
     select 'es' || at, 'row', 'rack-' || r, 'sw:' || at, 'root', 'SN', 'linked', jsonb_build_object('switchId', 'sw' || at) ${each(SWITCHES)}`,
  );
  await db.query(
    `insert into runs (id, target_kind, target_id, holder_kind, holder_id, request_id, fingerprint, type, plan_id, plan, job_id, attempt, action, initiator, state)
     select 'run-' || at || '-' || t, 'machine', 'm-' || at, 'rack', 'rack-' || r, 'req-' || at || '-' || t, '', '', 'p', '{}', 'job-' || at || t, 1, 'start', 'test', 'SUCCEEDED'
       ${each(TRAYS)} cross join generate_series(1, 5) t`,
  );
  await db.query("vacuum analyze");
}, 60_000);
afterAll(() => database.drop());

interface Explained {
  readonly Plan: { readonly "Shared Hit Blocks": number; readonly "Shared Read Blocks": number };
}

/** Pages of tables and indexes that the statements of a call read. */
async function pagesOf(call: (db: Queryable) => Promise<unknown>): Promise<number> {
  let pages = 0;
  const query = async <Row extends object>(statement: string | Statement, given?: readonly unknown[]) => {
    const { text, values }: Statement = typeof statement === "string" ? { text: statement } : statement;
    const [row] = await database.db.query<{ "QUERY PLAN": readonly Explained[] }>(
      `explain (analyze, buffers, timing off, format json) ${text}`,
      given ?? values ?? [],
    );
    const plan = row?.["QUERY PLAN"][0]?.Plan;
    pages += (plan?.["Shared Hit Blocks"] ?? Number.NaN) + (plan?.["Shared Read Blocks"] ?? Number.NaN);
    return [] as Row[];
  };
  await call({ query, execute: async (statement, values) => (await query(statement, values)).length });
  return pages;
}

/** A device takes a few pages of each table and index that has something of it; the tables have hundreds. */
test.each([
  ["rack", "rack-125", (TRAYS + SWITCHES + SHELVES) * 15],
  ["machine", "m-12505", 40],
  ["host_reprovision", "m-12505", 60],
  ["switch", "sw12505", 60],
  ["power_shelf", "ps12505", 60],
  ["expected_switch", "es12505", 60],
  ["run", "run-12505-1", 60],
])("a %s is loaded without reading those of other racks", async (kind, id, most) => {
  const { load } = storeOf(allStores, kind);
  const { things, unreadable } = await load(database.db, [id]);
  expect([...things, ...unreadable].map((each) => each.id)).toEqual([id]); // the rows here say only what makes them be found
  expect(await pagesOf((db) => load(db, [id]))).toBeLessThan(most);
});

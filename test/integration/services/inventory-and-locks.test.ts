import { join } from "node:path";
import pg from "pg";
import { beforeEach, expect, test } from "vitest";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import type { ExpectedInput } from "../../../src/services/expected-device/input.ts";
import {
  deleteAllExpectedPowerShelves,
  replaceAllExpectedPowerShelves,
} from "../../../src/services/expected-power-shelf/expected-power-shelves.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type StockServer, startStockServer } from "../../support/stock-server.ts";
import { dumpTables } from "../api/forge-under-test.ts";

/** The largest inventory that one call may write, on a PostgreSQL as it comes: 6,001 of the 6,400 locks that it has room for. */
const ROWS = 2_000;
const tester = { name: "ann", roles: ["admin"], address: null } as const;

let server: StockServer;
let deps: ServiceDeps;
beforeAll(async () => {
  server = await startStockServer();
  const secrets = openSecretStore({ keyFile: join(server.directory, "secret-key") });
  deps = { db: server.db, stores: allStores, secrets, maxFindByIds: 100 };
});
afterAll(() => server.stop());
beforeEach(async () => {
  await server.db.query("truncate power_shelves, expected_power_shelves, secrets, work, journal, claims");
  await server.db.query(
    `insert into power_shelves (id, name, bmc_mac, bmc_address, bmc_port, state)
     select 'shelf-' || n, 'shelf ' || n, $1 || lpad(to_hex(n / 256), 2, '0') || ':' || lpad(to_hex(n % 256), 2, '0'),
            '10.0.0.1', 443, 'ready' from generate_series(0, $2::int - 1) as n`,
    [PREFIX, ROWS],
  );
});

const PREFIX = "02:00:00:00:";
const hex = (byte: number) => byte.toString(16).padStart(2, "0");
/** Each of a BMC whose shelf is on record. */
const rowOf = (n: number, change: Partial<ExpectedInput> = {}): ExpectedInput => ({
  bmcMac: `${PREFIX}${hex(n >> 8)}:${hex(n & 255)}`,
  bmcUsername: "root",
  bmcPassword: "first",
  serial: `SN${n}`,
  bmcEndpoint: "192.0.2.1:443",
  rackId: "rack-1",
  metadata: { name: `shelf ${n}`, description: "", labels: {} },
  ...change,
});
const rows = (from: number, to: number, change: Partial<ExpectedInput> = {}) =>
  Array.from({ length: to - from }, (_, index) => rowOf(from + index, change));
const replaceAll = (inputs: readonly ExpectedInput[]) => replaceAllExpectedPowerShelves(deps, tester, inputs);
const count = async (table: string) =>
  (await server.db.query<{ count: number }>(`select count(*)::int as count from ${table}`))[0]?.count;

test("two thousand rows, each with a shelf of its own, are added, replaced and removed in one call each", async () => {
  await replaceAll(rows(0, ROWS));
  expect(await count("expected_power_shelves")).toBe(ROWS);
  expect(await count("secrets")).toBe(ROWS);
  await replaceAll(rows(0, ROWS, { rackId: "rack-2", bmcPassword: "second" }));
  expect(await count("expected_power_shelves where rack_id = 'rack-2'")).toBe(ROWS);
  await replaceAll(rows(0, ROWS / 2));
  expect(await count("expected_power_shelves")).toBe(ROWS / 2);
  await deleteAllExpectedPowerShelves(deps, tester);
  expect(await count("expected_power_shelves")).toBe(0);
}, 120_000);

test("two who replace everything at the same moment both succeed, one after the other", {
  tags: "race",
  timeout: 120_000,
}, async () => {
  await Promise.all([replaceAll(rows(0, ROWS, { rackId: "rack-1" })), replaceAll(rows(0, ROWS, { rackId: "rack-2" }))]);
  const racks = await server.db.query("select distinct rack_id from expected_power_shelves");
  expect(racks).toHaveLength(1);
  expect(await count("expected_power_shelves")).toBe(ROWS);
});

/** Takes locks until there is room for a few hundred alone. */
async function fillLockTable(other: pg.Client): Promise<void> {
  await other.query("begin");
  for (let from = 0; ; from += 500) {
    await other.query("savepoint more");
    try {
      await other.query("select pg_advisory_xact_lock(n) from generate_series($1::int, $1::int + 499) as n", [from]);
    } catch {
      await other.query("rollback to savepoint more");
      return;
    }
  }
}

test("while others fill the table of locks it is refused, changes nothing, and succeeds once they are done", async () => {
  const other = new pg.Client({ connectionString: server.url });
  await other.connect();
  try {
    await fillLockTable(other);
    const before = await dumpTables(server.db);
    await expect(replaceAll(rows(0, ROWS))).rejects.toMatchObject({
      kind: "exhausted",
      message: expect.stringMatching(/no room for this now .*max_locks_per_transaction/),
    });
    expect(await dumpTables(server.db)).toEqual(before);
  } finally {
    await other.end();
  }
  await replaceAll(rows(0, ROWS));
  expect(await count("expected_power_shelves")).toBe(ROWS);
}, 120_000);

test("one row more is refused for good, whatever the database has room for", async () => {
  await expect(replaceAll(rows(0, ROWS + 1))).rejects.toMatchObject({ kind: "invalid_argument" });
});

// @module-tag race
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { diedAt, letGoOn, type Place, placesOf, setAside } from "../support/processes/places.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { startProgram } from "../support/processes/programs.ts";
import type { RackVictimOrder } from "../support/processes/rack-victim.ts";
import { addWholeRack, createTrayTables, startRackEngine } from "../support/racks/rack-engine.ts";

/**
 * A replica dies in every sub-state of a rack's maintenance; two others take over what it left. Each tray is flashed once, and the
 * rack ends where it would have ended.
 */
const TRAYS = 2;
/** At every fail point of each sub-state, and not only at the one where what was done is not yet on record. */
const isLong = process.env.CHAOS_LONG === "1";

let bench: ProcessBench;
let database: TestDatabase;
beforeAll(async () => {
  bench = openProcessBench();
  database = await createTestDatabase();
  await createTrayTables(database.db);
});
afterAll(async () => {
  await bench.close();
  await database.drop();
});

let racks = 0;
async function startVictim(instance: string, place?: Place) {
  racks += 1;
  const rackId = `rack-${racks}`;
  const trays = await addWholeRack(database.db, rackId, TRAYS);
  const order: RackVictimOrder = { url: database.url, instance, rackId, ...(place && { place }) };
  const victim = await startProgram(bench, { program: "rack-victim.ts", args: [JSON.stringify(order)] });
  return { rackId, trays, victim };
}

/** As if the time of all leases had passed: two replicas finish what the dead ones left. */
async function finishAll(): Promise<void> {
  const { db } = database;
  const successors = await Promise.all(["two", "three"].map((instance) => startRackEngine(db, { instance })));
  try {
    await letGoOn(db);
    const busy = "select id, state, state_data, outcome from racks where state <> 'ready'";
    await eventually(async () => (await db.query(busy)).length === 0, {
      what: "all racks are ready",
      within: 120_000,
      seen: async () => JSON.stringify(await db.query(busy), null, 1),
    });
  } finally {
    await Promise.all(successors.map((successor) => successor.stop()));
  }
}

async function expectWhole(rackId: string, trays: readonly string[], where: string): Promise<void> {
  const { db } = database;
  const runs = await db.query<{ workflow: string; state: string }>(
    "select plan ->> 'workflow' as workflow, state from runs where target_kind = 'rack' and target_id = $1 order by created_at",
    [rackId],
  );
  expect(runs, where).toEqual([
    { workflow: "rack_maintenance", state: "SUCCEEDED" },
    { workflow: "rack_validation", state: "SUCCEEDED" },
  ]);
  const flashes = await db.query<{ tray: string }>("select tray from flashes where tray = any($1) order by tray", [
    trays,
  ]);
  expect(
    flashes.map(({ tray }) => tray),
    `${where}: each tray's own log shows one flash`,
  ).toEqual([...trays]);
  const children = await db.query<{ state: string }>(
    "select c.state from runs c join runs p on p.id = c.parent_run_id where p.target_id = $1",
    [rackId],
  );
  expect(
    children.map(({ state }) => state),
    where,
  ).toEqual(Array(3 * TRAYS).fill("SUCCEEDED"));
  const history = await db.query<{ to: string }>(
    `select distinct to_state as "to" from journal where kind = 'rack' and id = $1 and to_state is not null`,
    [rackId],
  );
  expect(history.map(({ to }) => to).sort(), where).toEqual([
    "created",
    "discovering",
    "maintenance",
    "ready",
    "validating",
  ]);
}

/** The places to die at: of each sub-state the last fail point before its commit, where devices know more than we have on record. */
function chosen(places: readonly Place[]): readonly Place[] {
  if (isLong) return places;
  const byPosition = Map.groupBy(places, ({ position }) => position);
  return [...byPosition.values()].flatMap((of) =>
    of.filter(({ failPoint }) => failPoint === "transitions:journaled").slice(0, 1),
  );
}

test("a rack's maintenance survives kill -9 in each sub-state: each device is flashed once", {
  timeout: 900_000,
}, async () => {
  const undisturbed = await startVictim("undisturbed");
  const places = await placesOf(undisturbed.victim);
  await expectWhole(undisturbed.rackId, undisturbed.trays, "undisturbed");
  const positions = new Set(places.map(({ position }) => position));
  for (const certain of CERTAIN) expect(positions).toContain(certain);
  const killed: { readonly rackId: string; readonly trays: readonly string[]; readonly where: string }[] = [];
  for (const place of chosen(places)) {
    const where = `${place.failPoint} (${place.position})`;
    const { victim, rackId, trays } = await startVictim(where, place);
    if (!(await diedAt(place, victim))) throw new Error(`it did not come by ${where}`);
    await setAside(database.db);
    killed.push({ rackId, trays, where });
  }
  const died = new Set(killed.map(({ where }) => where));
  for (const certain of CERTAIN)
    expect(
      [...died].some((where) => where.includes(`(${certain})`)),
      certain,
    ).toBe(true);
  await finishAll();
  for (const { rackId, trays, where } of killed) await expectWhole(rackId, trays, where);
  expect(await database.db.query("select * from claims")).toEqual([]);
});

const CERTAIN = [
  "rack discovering",
  "rack_maintenance PENDING",
  "child of firmware_upgrade PENDING",
  "child of firmware_upgrade RUNNING in update_bmc announced",
  "child of power_on_compute RUNNING in set_device_power announced",
  "rack validating",
  "rack_validation PENDING",
];

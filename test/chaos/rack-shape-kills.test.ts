// @module-tag race
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import type { BayVictimOrder } from "../support/processes/bay-victim.ts";
import { diedAt, letGoOn, type Place, placesOf, setAside } from "../support/processes/places.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { startProgram } from "../support/processes/programs.ts";
import { createBayTables } from "../support/rigs/bay.ts";
import { addBay, requestMaintenance, startBayEngine } from "../support/rigs/bay-engine.ts";
import { createRigTables } from "../support/rigs/rig.ts";

/**
 * The proof that racks and fleets fit onto the ground: a thing that takes a set of claims, starts a workflow on itself which has runs
 * on its devices, goes back a stage and keeps receipts, dies at every fail point that it comes through, and always ends as if
 * nothing had been.
 */
const GADGETS = 3;
/** Each gadget is flashed in two rounds, once a round. */
const ROUNDS = 2;

let bench: ProcessBench;
let database: TestDatabase;
beforeAll(async () => {
  bench = openProcessBench();
  database = await createTestDatabase();
  await createRigTables(database.db);
  await createBayTables(database.db);
});
afterAll(async () => {
  await bench.close();
  await database.drop();
});

let bays = 0;
async function startVictim(instance: string, place?: Place) {
  bays += 1;
  const bayId = `bay-${bays}`;
  const gadgets = await addBay(database.db, bayId, GADGETS);
  const order: BayVictimOrder = { url: database.url, instance, bayId, ...(place && { place }) };
  const victim = await startProgram(bench, { program: "bay-victim.ts", args: [JSON.stringify(order)] });
  return { bayId, gadgets, victim };
}

async function findPlaces(): Promise<Place[]> {
  const { victim, bayId, gadgets } = await startVictim("undisturbed");
  const places = await placesOf(victim);
  await expectWhole(bayId, gadgets, "undisturbed");
  return places;
}

/** As if the time of all leases had passed: another replica finishes what the dead ones left, and their callers ask again. */
async function finishAll(bayIds: readonly string[]): Promise<void> {
  const { db } = database;
  const unasked =
    "select id from bays where id = any($1) and maintenance_requested is null and last_maintenance_request is null";
  for (const { id } of await db.query<{ id: string }>(unasked, [bayIds])) await requestMaintenance(db, id);
  const successor = await startBayEngine(db, { instance: "successor" });
  try {
    await letGoOn(db);
    const busy = "select id, state, outcome from bays where state <> 'ready' or maintenance_requested is not null";
    await eventually(async () => (await db.query(busy)).length === 0, {
      what: "all bays are ready again",
      within: 180_000,
      seen: async () => JSON.stringify(await db.query(busy), null, 1),
    });
  } finally {
    await successor.stop();
  }
}

async function expectWhole(bayId: string, gadgets: readonly string[], where: string): Promise<void> {
  const { db } = database;
  const [parent, ...others] = await db.query<{ id: string; state: string; visits: string[] }>(
    `select id, state, (select array_agg(concat_ws(' ', s ->> 'name', coalesce(s ->> 'round', '1'), s ->> 'state') order by n)
                          from jsonb_array_elements(facts -> 'steps') with ordinality as t(s, n)) as visits
       from runs where target_kind = 'bay' and target_id = $1`,
    [bayId],
  );
  expect(others, where).toEqual([]);
  expect(parent?.state, where).toBe("SUCCEEDED");
  expect(parent?.visits, where).toEqual([
    "cool_down 1 SKIPPED",
    "flash_all 1 SUCCEEDED",
    "check_bay 1 FAILED",
    "flash_all 2 SUCCEEDED",
    "check_bay 2 SUCCEEDED",
  ]);
  const children = await db.query<{ round: number; target: string; state: string; receipt: number | null }>(
    `select parent_round as round, target_id as target, state, (facts -> 'steps' -> 0 -> 'receipt' ->> 'job')::int as receipt
       from runs where parent_run_id = $1 order by parent_round, target_id`,
    [parent?.id],
  );
  const each = Array.from({ length: ROUNDS }, (_, at) =>
    gadgets.map((target) => ({ round: at + 1, target, state: "SUCCEEDED" })),
  );
  expect(
    children.map(({ receipt: _, ...child }) => child),
    where,
  ).toEqual(each.flat());
  // Every gadget was flashed once a round, and a receipt that was kept names its own job.
  const jobs = await db.query<{ job: number; gadget: string }>(
    "select job, gadget from flash_jobs where gadget = any($1)",
    [gadgets],
  );
  expect(jobs.map(({ gadget }) => gadget).sort(), where).toEqual([...gadgets, ...gadgets].sort());
  for (const { receipt, target } of children)
    if (receipt !== null) expect(jobs, where).toContainEqual({ job: receipt, gadget: target });
  const keys = [`bay/${bayId}`, ...gadgets.map((id) => `gadget/${id}`)];
  const held = "select * from claims where thing_kind || '/' || thing_id = any($1)";
  expect(await db.query(held, [keys]), where).toEqual([]);
}

test("a rack-shaped thing can die at any fail point: nothing is lost, doubled or half done", {
  timeout: 900_000,
}, async () => {
  const places = await findPlaces();
  const positions = new Set(places.map(({ position }) => position));
  for (const certain of CERTAIN) expect(positions).toContain(certain);
  const killed: { readonly bayId: string; readonly gadgets: readonly string[]; readonly where: string }[] = [];
  for (const place of places) {
    const where = `${place.failPoint} (${place.position})`;
    const { victim, bayId, gadgets } = await startVictim(where, place);
    if (!(await diedAt(place, victim))) throw new Error(`it did not come by ${where}`);
    await setAside(database.db);
    killed.push({ bayId, gadgets, where });
  }
  await finishAll(killed.map(({ bayId }) => bayId));
  for (const { bayId, gadgets, where } of killed) await expectWhole(bayId, gadgets, where);
  expect(await database.db.query("select * from claims")).toEqual([]);
});

const CERTAIN = [
  "bay ready",
  "parent PENDING",
  "parent RUNNING in flash_all 1 acted",
  "child of round 1 RUNNING in flash 1 announced",
  "child of round 2 RUNNING in flash 1 announced",
  "parent RUNNING in flash_all 2 acted",
];

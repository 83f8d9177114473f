import type { BenchServer } from "./bench-server.ts";
import { createFleet } from "./fleet.ts";
import { oneTransactionEach } from "./limits/one-transaction-each.ts";
import { type Measurement, median } from "./measurement.ts";

const TARGET_RATE = 8_000;
const TARGET_RATIO = 3;
/** initializing → fetching_data → configuring → ready. */
const TRANSITIONS_EACH = 3;

/** Shelves from created to ready on instant hardware: claim, load, decide, handle, commit, one controller. */
export async function measureTransitions(server: BenchServer, { quick }: { quick: boolean }): Promise<Measurement[]> {
  const fleets = quick ? [2_000] : [2_000, 20_000];
  const repetitions = quick ? 1 : 3;
  const rates = new Map<number, number[]>(fleets.map((shelves) => [shelves, []]));
  const bare: number[] = [];
  for (let repetition = 0; repetition < repetitions; repetition += 1) {
    for (const [shelves, measured] of rates) measured.push(await transitionsPerSecond(server, shelves));
    bare.push(await bareRate(server, quick ? 1_000 : 2_000));
  }
  const limit = { what: "one transaction each", value: median(bare) };
  return [...rates].flatMap(([shelves, values]) => [
    {
      what: `transitions, ${shelves.toLocaleString("en-US")} shelves`,
      values,
      unit: "/s",
      limit,
      target: TARGET_RATE,
      better: "higher",
    },
    {
      what: "  against one transaction each",
      values: values.map((value) => value / limit.value),
      unit: "×",
      target: TARGET_RATIO,
      better: "higher",
    },
  ]);
}

async function transitionsPerSecond(server: BenchServer, shelves: number): Promise<number> {
  const database = await server.freshDatabase();
  const fleet = createFleet(database.db);
  try {
    await fleet.addShelves(shelves);
    const took = await fleet.runUntilReady(shelves);
    const [row] = await database.db.query<{ count: number }>(
      "select count(*)::int as count from journal where type = 'transition'",
    );
    const count = row?.count ?? 0;
    if (count !== shelves * TRANSITIONS_EACH) {
      throw new Error(`the journal has ${count} transitions, not ${TRANSITIONS_EACH} for each of ${shelves} shelves`);
    }
    return (count * 1_000) / took;
  } finally {
    fleet.close();
    await database.drop();
  }
}

async function bareRate(server: BenchServer, milliseconds: number): Promise<number> {
  const database = await server.freshDatabase();
  const fleet = createFleet(database.db);
  try {
    await fleet.addShelves(2_000);
    return await oneTransactionEach(database, milliseconds);
  } finally {
    fleet.close();
    await database.drop();
  }
}

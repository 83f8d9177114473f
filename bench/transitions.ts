import type { BenchServer } from "./bench-server.ts";
import { type CpuEach, processorTime, startCpuMeter } from "./figures/cpu-meter.ts";
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
  const measured = new Map<number, Transitions[]>(fleets.map((shelves) => [shelves, []]));
  const bare: number[] = [];
  for (let repetition = 0; repetition < repetitions; repetition += 1) {
    for (const [shelves, results] of measured) results.push(await measureTransitionsOf(server, shelves));
    bare.push(await bareRate(server, quick ? 1_000 : 2_000));
  }
  const limit = { what: "one transaction each", value: median(bare) };
  return [...measured].flatMap(([shelves, results]) => [
    {
      what: `transitions, ${shelves.toLocaleString("en-US")} shelves`,
      values: results.map(({ perSecond }) => perSecond),
      unit: "/s",
      limit,
      target: TARGET_RATE,
      better: "higher",
    },
    {
      what: "  against one transaction each",
      values: results.map(({ perSecond }) => perSecond / limit.value),
      unit: "×",
      target: TARGET_RATIO,
      better: "higher",
    },
    ...processorTime(results.map(({ cpu }) => cpu)),
  ]);
}

interface Transitions {
  readonly perSecond: number;
  readonly cpu: CpuEach;
}

async function measureTransitionsOf(server: BenchServer, shelves: number): Promise<Transitions> {
  const database = await server.freshDatabase();
  const fleet = createFleet(database.db);
  try {
    await fleet.addShelves(shelves);
    const cpu = startCpuMeter(server);
    const took = await fleet.runUntilReady(shelves);
    const each = cpu.each(shelves * TRANSITIONS_EACH);
    const [row] = await database.db.query<{ count: number }>(
      "select count(*)::int as count from journal where type = 'transition'",
    );
    const count = row?.count ?? 0;
    if (count !== shelves * TRANSITIONS_EACH) {
      throw new Error(`the journal has ${count} transitions, not ${TRANSITIONS_EACH} for each of ${shelves} shelves`);
    }
    return { perSecond: (count * 1_000) / took, cpu: each };
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

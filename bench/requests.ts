import { setTimeout as pause } from "node:timers/promises";
import { setPowerShelfMaintenance } from "../src/services/power-shelf/power-shelves.ts";
import { allStores } from "../src/wiring/things/all-things.ts";
import type { BenchDatabase, BenchServer } from "./bench-server.ts";
import { addressOf, createFleet, type Fleet } from "./fleet.ts";
import { bareNotify } from "./limits/bare-notify.ts";
import { type Measurement, percentile } from "./measurement.ts";

const SHELVES = 2_000;
const TARGET_P50 = 20;
const TARGET_P99 = 100;

/** From the call of the service until the handler's command reaches the hardware, on a system that has nothing else to do. */
export async function measureRequests(server: BenchServer, { quick }: { quick: boolean }): Promise<Measurement[]> {
  const database = await server.freshDatabase();
  const fleet = createFleet(database.db);
  try {
    await fleet.addShelves(SHELVES);
    await fleet.runUntilReady(SHELVES);
    const bare = await bareNotify(database.db, quick ? 100 : 400);
    const latencies: number[][] = [];
    for (let repetition = 0; repetition < (quick ? 1 : 3); repetition += 1) {
      latencies.push(await requestLatencies(database, fleet, quick ? 100 : 400));
    }
    return [
      {
        what: "request → handler started, idle, p50",
        values: latencies.map((some) => percentile(some, 0.5)),
        unit: "ms",
        limit: { what: "commit → NOTIFY heard", value: bare.p50 },
        target: TARGET_P50,
        better: "lower",
      },
      {
        what: "request → handler started, idle, p99",
        values: latencies.map((some) => percentile(some, 0.99)),
        unit: "ms",
        limit: { what: "commit → NOTIFY heard", value: bare.p99 },
        target: TARGET_P99,
        better: "lower",
      },
    ];
  } finally {
    fleet.close();
    await database.drop();
  }
}

async function requestLatencies({ db }: BenchDatabase, fleet: Fleet, times: number): Promise<number[]> {
  const deps = { db, stores: allStores, secrets: fleet.secrets, maxFindByIds: 100 };
  const caller = { name: "bench", roles: ["admin"], address: null };
  let commanded = Promise.withResolvers<number>();
  let completed = Promise.withResolvers<void>();
  let wanted = "";
  fleet.hardware.onPowerCommand = (address) => {
    if (address === wanted) commanded.resolve(performance.now());
  };
  const controller = await fleet.startController({
    moved({ to }) {
      if (to === "ready") completed.resolve();
    },
  });
  const latencies: number[] = [];
  for (let count = 0; count < times; count += 1) {
    const shelf = 1 + Math.floor(Math.random() * SHELVES);
    wanted = addressOf(shelf);
    commanded = Promise.withResolvers();
    completed = Promise.withResolvers();
    const askedAt = performance.now();
    const operation = count % 2 === 0 ? "power_off" : "power_on";
    await setPowerShelfMaintenance(deps, caller, { powerShelfIds: [`ps-${shelf}`], operation, reference: undefined });
    latencies.push((await commanded.promise) - askedAt);
    await completed.promise;
    await pause(5 + Math.random() * 20); // so that the requests fall anywhere between two polls
  }
  await controller.stop();
  return latencies;
}

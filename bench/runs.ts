import type { BenchDatabase, BenchServer } from "./bench-server.ts";
import { type GrpcLoad, startGrpcLoad } from "./clients/grpc-load.ts";
import { type CpuEach, processorTime, startCpuMeter } from "./figures/cpu-meter.ts";
import { createFleet } from "./fleet.ts";
import { createInstantMachines, createMemory } from "./instant-machines.ts";
import { bareNotify } from "./limits/bare-notify.ts";
import { oneTransactionEach } from "./limits/one-transaction-each.ts";
import { createMachineFleet } from "./machine-fleet.ts";
import { type Measurement, median, percentile } from "./measurement.ts";
import { startRunService } from "./run-service.ts";

const TARGET_RATE = 300;
/** The built-in plan of five steps: set-netboot, reboot-to-netboot, repave-image, join-cluster, verify-in-cluster. */
const RUN_TYPE = "REPAVE";
const CALLERS = 32;

/** Runs of a five-step plan over gRPC, from the first StartRun to the last SUCCEEDED, one controller, machines that obey at once. */
export async function measureRuns(server: BenchServer, { quick }: { quick: boolean }): Promise<Measurement[]> {
  const runs = quick ? 500 : 3_000;
  const measured: RunsMeasured[] = [];
  for (let repetition = 0; repetition < (quick ? 1 : 3); repetition += 1) {
    measured.push(await measureOnce(server, { runs, idle: quick ? 50 : 200 }));
  }
  const values = <T>(of: (one: RunsMeasured) => T) => measured.map(of);
  const changes = median(values((one) => one.changesPerRun));
  const bare = await bareRate(server, quick ? 1_000 : 2_000);
  const notify = { what: "commit → NOTIFY heard", p50: median(values((one) => one.bare.p50)) };
  return [
    {
      what: `runs of five steps, ${runs.toLocaleString("en-US")} over gRPC, start to SUCCEEDED`,
      values: values((one) => one.runsPerSecond),
      unit: "/s",
      limit: { what: `one transaction for each of ${Math.round(changes)} changes`, value: bare / changes },
      target: TARGET_RATE,
      better: "higher",
    },
    ...processorTime(values(({ cpu }) => cpu)),
    {
      what: "  a run alone, start to SUCCEEDED, p50",
      values: values((one) => percentile(one.alone, 0.5)),
      unit: "ms",
      better: "lower",
    },
    {
      what: "StartRun, idle, p50",
      values: values((one) => percentile(one.starts, 0.5)),
      unit: "ms",
      limit: { what: notify.what, value: notify.p50 },
      better: "lower",
    },
    { what: "StartRun, idle, p99", values: values((one) => percentile(one.starts, 0.99)), unit: "ms", better: "lower" },
    {
      what: `StartRun, ${CALLERS} at once while runs are carried out, p99`,
      values: values((one) => percentile(one.busyStarts, 0.99)),
      unit: "ms",
      better: "lower",
    },
  ];
}

interface RunsMeasured {
  readonly cpu: CpuEach;
  readonly runsPerSecond: number;
  readonly changesPerRun: number;
  readonly starts: readonly number[];
  readonly busyStarts: readonly number[];
  readonly alone: readonly number[];
  readonly bare: { readonly p50: number; readonly p99: number };
}

async function measureOnce(
  server: BenchServer,
  { runs, idle }: { readonly runs: number; readonly idle: number },
): Promise<RunsMeasured> {
  const database = await server.freshDatabase();
  const fleet = createMachineFleet(database.db);
  const all = runs + idle;
  await fleet.addMachines(1, all);
  await fleet.prepareRuns(1, all);
  const memory = createMemory();
  const ends = new Ends();
  const service = await startRunService(fleet.deps, createInstantMachines({ memory }), {
    observer: { moved: ({ kind, to }) => ends.note(kind, to) },
  });
  const load = startGrpcLoad(service.grpcAddress);
  try {
    const ids = Array.from({ length: all }, (_, index) => `m-${index + 1}`);
    const bare = await bareNotify(database.db, 100);
    const { starts, alone } = await oneByOne(load, ends, ids.slice(runs));
    const cpu = startCpuMeter(server);
    const startedAt = performance.now();
    const ended = ends.after(runs);
    const made = await load.make({ method: "startRun", runType: RUN_TYPE, ids, atOnce: CALLERS, times: runs });
    await ended;
    const took = performance.now() - startedAt;
    const each = cpu.each(runs);
    const changesPerRun = await checkRuns(database, memory, all);
    return {
      runsPerSecond: (runs * 1_000) / took,
      cpu: each,
      changesPerRun,
      starts,
      alone,
      busyStarts: made.latencies,
      bare,
    };
  } finally {
    await load.stop();
    await service.stop();
    fleet.close();
    await database.drop();
  }
}

/** Counts runs that have ended. */
class Ends {
  #left = 0;
  #done = Promise.withResolvers<void>();

  note(kind: string, to: string): void {
    if (kind !== "run" || to === "RUNNING") return;
    if (to !== "SUCCEEDED") this.#done.reject(new Error(`a run came to be ${to}`));
    this.#left -= 1;
    if (this.#left === 0) this.#done.resolve();
  }

  after(count: number): Promise<void> {
    this.#left = count;
    this.#done = Promise.withResolvers();
    return this.#done.promise;
  }
}

async function oneByOne(
  load: GrpcLoad,
  ends: Ends,
  ids: readonly string[],
): Promise<{ readonly starts: number[]; readonly alone: number[] }> {
  const starts: number[] = [];
  const alone: number[] = [];
  for (const id of ids) {
    const startedAt = performance.now();
    const ended = ends.after(1);
    starts.push(
      ...(await load.make({ method: "startRun", runType: RUN_TYPE, ids: [id], atOnce: 1, times: 1 })).latencies,
    );
    await ended;
    alone.push(performance.now() - startedAt);
  }
  return { starts, alone };
}

/** That all of them did what they say, once; returns how many changes were journaled for each. */
async function checkRuns(
  { db }: BenchDatabase,
  memory: ReturnType<typeof createMemory>,
  runs: number,
): Promise<number> {
  const [row] = await db.query<{ runs: number; changes: number }>(
    `select (select count(*)::int from runs where state = 'SUCCEEDED' and jsonb_array_length(facts -> 'steps') = 5) as runs,
            (select count(*)::int from journal where kind = 'run' or kind = 'machine' and type <> 'created') as changes`,
  );
  if (row?.runs !== runs) throw new Error(`${row?.runs} runs have SUCCEEDED with five steps, not ${runs}`);
  for (const effect of ["reset", "install", "join"] as const) {
    if (memory.count(effect) !== runs) throw new Error(`there were ${memory.count(effect)} × ${effect}, not ${runs}`);
  }
  return row.changes / runs;
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

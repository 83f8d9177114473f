import { createPlan } from "../src/services/run/plans.ts";
import type { BenchDatabase, BenchServer } from "./bench-server.ts";
import { startGrpcLoad } from "./clients/grpc-load.ts";
import { CHUNK_BYTES, createInstantMachines, createMemory } from "./instant-machines.ts";
import { benchCaller, createMachineFleet } from "./machine-fleet.ts";
import { type Measurement, median } from "./measurement.ts";
import { startRunService } from "./run-service.ts";

const LINE = "a line of eighty characters, as scripts write them: package 17 of 93 is unpacked\n";
const CHUNKS_EACH = 256;
const MEGABYTE = 1_024 * 1_024;
const FOLLOWERS = 8;
const PLAN = "plan-talkative";

/** Runs of one script that writes a megabyte; each is followed over gRPC from its start until its end. */
export async function measureRunLogs(server: BenchServer, { quick }: { quick: boolean }): Promise<Measurement[]> {
  const runs = quick ? 16 : 100;
  const rates: number[] = [];
  const bare: number[] = [];
  for (let repetition = 0; repetition < (quick ? 1 : 3); repetition += 1) {
    const database = await server.freshDatabase();
    try {
      rates.push(await followedPerSecond(database, runs));
      bare.push(await insertedPerSecond(database, runs));
    } finally {
      await database.drop();
    }
  }
  return [
    {
      what: `run logs, stored and followed over gRPC, ${FOLLOWERS} at once`,
      values: rates.map((bytes) => bytes / MEGABYTE),
      unit: "MB/s",
      limit: { what: "inserted, a statement each megabyte", value: median(bare) / MEGABYTE },
      better: "higher",
    },
    {
      what: "  in lines of 80 characters",
      values: rates.map((bytes) => bytes / LINE.length),
      unit: "/s",
      better: "higher",
    },
  ];
}

async function followedPerSecond(database: BenchDatabase, runs: number): Promise<number> {
  const fleet = createMachineFleet(database.db);
  await fleet.addMachines(1, runs);
  await fleet.prepareRuns(1, runs);
  await createPlan(fleet.deps, benchCaller, {
    planId: PLAN,
    displayName: "One script that has much to say",
    steps: [
      { name: "say", kind: "ssh", payload: { script_ref: "verify_network.sh" }, timeoutSeconds: 300, maxRetries: 0 },
    ],
  });
  const size = CHUNKS_EACH * CHUNK_BYTES;
  const scriptOutput = LINE.repeat(Math.ceil(size / LINE.length)).slice(0, size);
  const service = await startRunService(fleet.deps, createInstantMachines({ memory: createMemory(), scriptOutput }));
  const load = startGrpcLoad(service.grpcAddress);
  try {
    const ids = Array.from({ length: runs }, (_, index) => `m-${index + 1}`);
    const { bytes, took } = await load.make({
      method: "followRun",
      planId: PLAN,
      ids,
      atOnce: FOLLOWERS,
      times: runs,
    });
    if (bytes < runs * size) throw new Error(`${bytes} bytes arrived, and ${runs * size} were said`);
    return (bytes * 1_000) / took;
  } finally {
    await load.stop();
    await service.stop();
    fleet.close();
  }
}

/** The same chunks, in the barest way. */
async function insertedPerSecond({ db }: BenchDatabase, times: number): Promise<number> {
  await db.query(
    "create table bench_chunks (run_id bigint, seq bigint, at timestamptz, data bytea, primary key (run_id, seq))",
  );
  const chunk = Buffer.from(LINE.repeat(CHUNK_BYTES)).subarray(0, CHUNK_BYTES);
  const chunks = Array.from({ length: CHUNKS_EACH }, () => chunk);
  const startedAt = performance.now();
  for (let run = 0; run < times; run += 1) {
    await db.query(
      "insert into bench_chunks select $1, row_number() over (), now(), data from unnest($2::bytea[]) as t(data)",
      [run, chunks],
    );
  }
  return (times * CHUNKS_EACH * CHUNK_BYTES * 1_000) / (performance.now() - startedAt);
}

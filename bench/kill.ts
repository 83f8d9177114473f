import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { seconds } from "../src/kernel/time/duration.ts";
import { allSteps } from "../src/runs/steps/index.ts";
import { startRun } from "../src/services/run/starts.ts";
import type { Database } from "../src/store/postgres/database.ts";
import { loadRunbooks } from "../src/wiring/runbook-files.ts";
import type { BenchDatabase, BenchServer } from "./bench-server.ts";
import { createInstantMachines, createMemory } from "./instant-machines.ts";
import { benchCaller, createMachineFleet, type MachineFleet } from "./machine-fleet.ts";
import { createMachineTables } from "./machines-in-database.ts";
import { type Measurement, median } from "./measurement.ts";

const TARGET_SECONDS = 30;
/** Long enough that all runs are under way before the first has ended. */
const BOOT_TAKES = seconds(10);
const EFFECTS = ["reset", "install", "join"] as const;

/** Two replicas carry out runs; one is killed in the middle of it, and the other goes on with all of them. */
export async function measureKill(server: BenchServer, { quick }: { quick: boolean }): Promise<Measurement[]> {
  const runs = quick ? 200 : 1_000;
  const killed: Killed[] = [];
  for (let repetition = 0; repetition < (quick ? 1 : 3); repetition += 1) killed.push(await killOnce(server, runs));
  const inFlight = median(killed.map((one) => one.inFlight));
  return [
    {
      what: `kill -9 of one of two replicas, ${inFlight.toLocaleString("en-US")} runs in flight: all resumed, none lost or doubled`,
      values: killed.map((one) => one.resumedAfter / 1_000),
      unit: "s",
      target: TARGET_SECONDS,
      better: "lower",
    },
    {
      what: "  until all have SUCCEEDED",
      values: killed.map((one) => one.endedAfter / 1_000),
      unit: "s",
      better: "lower",
    },
  ];
}

interface Killed {
  readonly inFlight: number;
  readonly resumedAfter: number;
  readonly endedAfter: number;
}

async function killOnce(server: BenchServer, runs: number): Promise<Killed> {
  const database = await server.freshDatabase();
  const { db } = database;
  const fleet = createMachineFleet(db);
  const replicas: ChildProcess[] = [];
  try {
    await createMachineTables(db);
    await fleet.addMachines(1, runs);
    await fleet.prepareRuns(1, runs);
    await startRuns(fleet, runs);
    replicas.push(await startReplica(database, fleet, "victim"), await startReplica(database, fleet, "successor"));
    const [victim] = replicas;
    await until(async () => (await countEffects(db, "reset")) >= runs / 2);

    const [now] = await db.query<{ at: number }>(
      "select (extract(epoch from clock_timestamp()) * 1000000)::bigint as at",
    );
    const inFlight = await countActive(db);
    const dead = once(victim as ChildProcess, "exit");
    victim?.kill("SIGKILL");
    const killedAt = performance.now();
    await dead;
    // Epochs follow the clock: whatever has a later one was taken up since.
    await until(async () => (await countActive(db, now?.at)) === 0);
    const resumedAfter = performance.now() - killedAt;
    await until(async () => (await countActive(db)) === 0);
    const endedAfter = performance.now() - killedAt;
    await checkOutcome(db, runs);
    return { inFlight, resumedAfter, endedAfter };
  } finally {
    for (const replica of replicas) await stopReplica(replica);
    fleet.close();
    await database.drop();
  }
}

async function startRuns(fleet: MachineFleet, runs: number): Promise<void> {
  const { capabilitiesOf, takesSeeds } = createInstantMachines({ memory: createMemory() });
  const parts = { steps: allSteps, runbooks: loadRunbooks(), capabilitiesOf, takesSeeds };
  const deps = { ...fleet.deps, ...parts, clusterProbes: null, seedsAt: null };
  for (let n = 1; n <= runs; n += 1) {
    const asked = { requestId: "bench", machineId: `m-${n}`, type: "REPAVE", planId: "", params: {} };
    await startRun(deps, benchCaller, asked);
  }
}

async function startReplica({ config }: BenchDatabase, fleet: MachineFleet, name: string): Promise<ChildProcess> {
  const args = [JSON.stringify(config), fleet.keyFile, name, String(BOOT_TAKES)];
  const replica = fork(new URL("run-replica.ts", import.meta.url), args);
  await Promise.race([
    once(replica, "message"),
    once(replica, "exit").then(([code]) => Promise.reject(new Error(`${name} ended with ${code}`))),
  ]);
  return replica;
}

async function stopReplica(replica: ChildProcess): Promise<void> {
  if (replica.exitCode !== null || replica.signalCode !== null) return;
  const ended = once(replica, "exit");
  replica.disconnect();
  await ended;
}

const PATIENCE_MS = 240_000;

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error("the runs do not come to their end");
    await pause(100);
  }
}

/** Active runs; with an epoch those that nobody has taken up since. */
async function countActive(db: Database, epoch: number | null = null): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `select count(*)::int as count from runs r join work w on w.kind = 'run' and w.id = r.id
      where r.state in ('PENDING', 'RUNNING') and ($1::bigint is null or w.epoch < $1)`,
    [epoch],
  );
  return row?.count ?? 0;
}

async function countEffects(db: Database, effect: string): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    "select count(*)::int as count from bench_effects where effect = $1",
    [effect],
  );
  return row?.count ?? 0;
}

async function checkOutcome(db: Database, runs: number): Promise<void> {
  const [row] = await db.query<{ succeeded: number }>(
    "select count(*) filter (where state = 'SUCCEEDED')::int as succeeded from runs",
  );
  if (row?.succeeded !== runs) throw new Error(`${row?.succeeded} runs have SUCCEEDED, not ${runs}`);
  const odd = await db.query<{ id: string; effect: string; times: number }>(
    `select m.id, e.effect, (select count(*)::int from bench_effects b where b.id = m.id and b.effect = e.effect) as times
       from machines m cross join unnest($1::text[]) as e(effect)
      where (select count(*) from bench_effects b where b.id = m.id and b.effect = e.effect) <> 1 limit 5`,
    [EFFECTS],
  );
  if (odd.length > 0) throw new Error(`not every effect was had once: ${JSON.stringify(odd)}`);
}

import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { allThings } from "../../src/store/all-things.ts";
import { openSecretStore } from "../../src/store/secrets.ts";
import { createTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import type { MachineTruth } from "../support/machine-site.ts";
import { openProcessBench } from "../support/process-bench.ts";
import { putSiteOnRecord } from "../support/run-bench.ts";
import { adminToken, startServerProcess } from "../support/server-process.ts";
import { startSimulatorProcess } from "../support/simulator-process.ts";

const RUNS = 8;

interface StepRow {
  readonly name: string;
  readonly state: string;
  readonly retryCount: number;
}

test("one of two replicas stops in the middle of runs: no step is repeated and no run fails", async () => {
  const bench = openProcessBench();
  const database = await createTestDatabase();
  onTestFinished(async () => {
    await bench.close();
    await database.drop();
  });
  const { db } = database;
  const keyFile = join(bench.directory, "secret-key");
  const token = await adminToken(database);
  const simulator = await startSimulatorProcess(bench, { seed: 5, speed: 200 });
  const secrets = openSecretStore({ keyFile });
  const simulated = await putSiteOnRecord({ db, stores: allThings, secrets, maxFindByIds: 100 }, simulator.call);
  const machines = simulated.slice(0, RUNS).map(({ machine_id }) => machine_id);
  const replica = (name: string) =>
    startServerProcess(bench, {
      command: "serve",
      name,
      databaseUrl: database.url,
      env: { MILLWRIGHT_SECRET_KEY_FILE: keyFile, MILLWRIGHT_EXPLORER_INTERVAL: "1h" },
    });
  const [leaving, staying] = await Promise.all([replica("leaving"), replica("staying")]);
  for (const machineId of machines)
    await leaving.ask("baremetal.v1.RunService/StartRun", { requestId: "once", machineId, type: "REPAVE" }, token);
  const count = async (condition: string) =>
    (await db.query<{ count: number }>(`select count(*)::float8 as count from runs where ${condition}`))[0]?.count ?? 0;

  await eventually(async () => (await count("jsonb_array_length(facts -> 'steps') >= 2")) >= RUNS / 2, {
    what: "half of the runs are past their first step",
  });
  leaving.process.signal("SIGTERM");
  expect(await leaving.process.exited).toEqual({ code: 0, signal: null });
  expect(await count("state = 'RUNNING'"), "runs under way when it left").toBeGreaterThan(0);
  await eventually(async () => (await count("state in ('PENDING', 'RUNNING')")) === 0, {
    what: "all runs have ended",
    within: 90_000,
    seen: staying.process.transcript,
  });

  const runs = await db.query<{ state: string; machine_id: string; steps: StepRow[] }>(
    "select state, machine_id, facts -> 'steps' as steps from runs",
  );
  expect(runs).toHaveLength(RUNS);
  for (const { state, machine_id, steps } of runs) {
    expect(state, JSON.stringify(steps)).toBe("SUCCEEDED");
    expect(steps.map(({ retryCount }) => retryCount)).toEqual([0, 0, 0, 0, 0]);
    const { effects } = await simulator.call<MachineTruth>("GET", `/devices/${machine_id}`);
    expect(effects).toMatchObject({ resets: 2, installs_started: 1, installs: 1, joins_started: 1, joins: 1 });
  }
}, 180_000);

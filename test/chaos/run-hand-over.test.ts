import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { allSteps } from "../../src/runs/steps/index.ts";
import { createPlan } from "../../src/services/run/plans.ts";
import { openSecretStore } from "../../src/store/access/secrets.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import type { MachineTruth } from "../support/machine-site.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { adminToken, startServerProcess } from "../support/processes/server-process.ts";
import { type SimulatorProcess, startSimulatorProcess } from "../support/processes/simulator-process.ts";
import { putSiteOnRecord, tester } from "../support/run-bench.ts";
import { effectsSince, SITE_SCRIPT, STEP_KINDS } from "../support/step-kinds.ts";

interface Site {
  readonly bench: ProcessBench;
  readonly database: TestDatabase;
  readonly simulator: SimulatorProcess;
  readonly token: string;
  readonly machines: readonly string[];
  truth(machineId: string): Promise<MachineTruth>;
  replica(name: string): ReturnType<typeof startServerProcess>;
  count(condition: string): Promise<number>;
}

async function openSite(speed: number): Promise<Site> {
  const bench = openProcessBench();
  const database = await createTestDatabase();
  onTestFinished(async () => {
    await bench.close();
    await database.drop();
  });
  const { db, url } = database;
  const keyFile = join(bench.directory, "secret-key");
  const scripts = join(bench.directory, "scripts");
  mkdirSync(scripts);
  writeFileSync(join(scripts, SITE_SCRIPT.ref), SITE_SCRIPT.text);
  const simulator = await startSimulatorProcess(bench, { seed: 5, speed });
  const deps = { db, stores: allStores, secrets: openSecretStore({ keyFile }), maxFindByIds: 100 };
  const simulated = await putSiteOnRecord(deps, simulator.call);
  for (const { kind, step } of STEP_KINDS)
    await createPlan(deps, tester, { planId: `plan-${kind}`, displayName: kind, steps: [step] });
  return {
    bench,
    database,
    simulator,
    token: await adminToken(database),
    machines: simulated.map(({ machine_id }) => machine_id),
    truth: (id) => simulator.call<MachineTruth>("GET", `/devices/${id}`),
    replica: (name) =>
      startServerProcess(bench, {
        command: "serve",
        name,
        databaseUrl: url,
        env: {
          MILLWRIGHT_SECRET_KEY_FILE: keyFile,
          MILLWRIGHT_EXPLORER_INTERVAL: "1h",
          MILLWRIGHT_SCRIPTS_DIRECTORY: scripts,
        },
      }),
    count: async (condition) =>
      (await db.query<{ count: number }>(`select count(*)::float8 as count from runs where ${condition}`))[0]?.count ??
      0,
  };
}

interface RunRow {
  readonly state: string;
  readonly machine_id: string;
  readonly steps: readonly { readonly name: string; readonly retryCount: number }[];
}

const runsOf = ({ database }: Site) =>
  database.db.query<RunRow>("select state, machine_id, facts -> 'steps' as steps from runs");

test("one of two replicas stops in the middle of runs: no step is repeated and no run fails", async () => {
  const RUNS = 8;
  const site = await openSite(200);
  const { token, count } = site;
  const [leaving, staying] = await Promise.all([site.replica("leaving"), site.replica("staying")]);
  for (const machineId of site.machines.slice(0, RUNS))
    await leaving.ask("baremetal.v1.RunService/StartRun", { requestId: "once", machineId, type: "REPAVE" }, token);

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

  const runs = await runsOf(site);
  expect(runs).toHaveLength(RUNS);
  for (const { state, machine_id, steps } of runs) {
    expect(state, JSON.stringify(steps)).toBe("SUCCEEDED");
    expect(steps.map(({ retryCount }) => retryCount)).toEqual([0, 0, 0, 0, 0]);
    const { effects } = await site.truth(machine_id);
    expect(effects).toMatchObject({ resets: 2, installs_started: 1, installs: 1, joins_started: 1, joins: 1 });
  }
}, 180_000);

test("a replica stops in the middle of a step of every kind: another one goes on, and each is done once", async () => {
  expect(STEP_KINDS.map(({ kind }) => kind).sort()).toEqual([...allSteps.keys()].sort());
  const site = await openSite(20); // slow enough to be caught in the middle
  const { simulator, token, count } = site;
  const machineOf = new Map(STEP_KINDS.map(({ kind }, index) => [kind, site.machines[index] ?? ""]));
  const before = new Map<string, MachineTruth>();
  const faults = [
    // Those that would be done in a moment: the device takes its time, or does not answer yet.
    ["netboot", { method: "PATCH", path: "/redfish/v1/Systems", fault: { type: "latency", ms: 4_000 } }],
    ["rma", { method: "POST", path: "/redfish/v1/Systems", fault: { type: "latency", ms: 4_000 } }],
    ["ssh", { fault: { type: "ssh_refused" } }],
    ["net", { fault: { type: "ssh_refused" } }],
  ] as const;
  for (const [kind, rule] of faults) await simulator.call("POST", "/faults", { device: machineOf.get(kind), ...rule });
  const leaving = await site.replica("leaving");
  const longestFirst = ["reboot", "repave", "verify", "ssh", "net", "join", "netboot", "rma"];
  for (const kind of longestFirst) {
    const machineId = machineOf.get(kind) ?? "";
    before.set(kind, await site.truth(machineId));
    const asked = { requestId: "once", machineId, planId: `plan-${kind}` };
    await leaving.ask("baremetal.v1.RunService/StartRun", asked, token);
  }
  const begun = "state = 'RUNNING' and facts -> 'steps' -> 0 ->> 'evidence' is not null";
  await eventually(async () => (await count(begun)) === STEP_KINDS.length, {
    what: "a step of every kind is begun",
    seen: async () => JSON.stringify(await runsOf(site)),
  });
  const staying = await site.replica("staying");
  leaving.process.signal("SIGTERM");
  expect(await leaving.process.exited).toEqual({ code: 0, signal: null });
  expect(await count("state = 'FAILED'")).toBe(0);

  await simulator.call("DELETE", "/faults");
  await simulator.call("PUT", "/speed", { speed: 200 });
  const node = machineOf.get("verify") ?? "";
  await simulator.call("POST", `/devices/${node}/join`, { cluster: "default-cluster" });
  await eventually(async () => (await count("state in ('PENDING', 'RUNNING')")) === 0, {
    what: "all runs have ended",
    within: 120_000,
    seen: staying.process.transcript,
  });
  for (const { state, steps } of await runsOf(site)) {
    expect(state, JSON.stringify(steps)).toBe("SUCCEEDED");
    expect(steps).toMatchObject([{ retryCount: 0 }]);
  }
  for (const { kind, effects } of STEP_KINDS) {
    const byHand = kind === "verify" ? { joins_started: 1, joins: 1 } : {};
    const seen = effectsSince(before.get(kind) as MachineTruth, await site.truth(machineOf.get(kind) ?? ""));
    expect(seen, kind).toEqual({ ...effects, ...byHand });
  }
}, 240_000);

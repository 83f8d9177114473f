import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSecretStore } from "../../src/store/access/secrets.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import type { MachineTruth } from "../support/machine-site.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { adminToken, startServerProcess } from "../support/processes/server-process.ts";
import { type SimulatorProcess, startSimulatorProcess } from "../support/processes/simulator-process.ts";
import { putSiteOnRecord } from "../support/run-bench.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

/** What a stop in good order does with active runs: real processes, real signals. */
let bench: ProcessBench;
let database: TestDatabase;
let simulator: SimulatorProcess;
let token: string;
let unused: string[];

beforeAll(async () => {
  bench = openProcessBench();
  database = await createTestDatabase();
  token = await adminToken(database);
  simulator = await startSimulatorProcess(bench, { seed: 5, speed: 100 });
  const secrets = openSecretStore({ keyFile: join(bench.directory, "secret-key") });
  const deps = { db: database.db, stores: allStores, secrets, maxFindByIds: 100 };
  unused = (await putSiteOnRecord(deps, simulator.call)).map(({ machine_id }) => machine_id);
}, 60_000);
afterAll(async () => {
  await bench.close();
  await database.drop();
});

let servers = 0;
const serve = (env: Readonly<Record<string, string>> = {}, flags: readonly string[] = []) =>
  startServerProcess(bench, {
    command: "serve",
    flags,
    name: `server-${++servers}`,
    databaseUrl: database.url,
    env: {
      MILLWRIGHT_SECRET_KEY_FILE: join(bench.directory, "secret-key"),
      MILLWRIGHT_EXPLORER_INTERVAL: "1h",
      ...env,
    },
  });
type Server = Awaited<ReturnType<typeof serve>>;

interface RunRow {
  readonly state: string;
  readonly canceled: boolean;
}

async function startRepaves(server: Server, count: number): Promise<string[]> {
  const machines = unused.splice(0, count);
  for (const machineId of machines)
    await server.ask("baremetal.v1.RunService/StartRun", { requestId: "once", machineId, type: "REPAVE" }, token);
  await eventually(async () => (await mediaOf(machines)).some((media) => media !== null), {
    what: "an installation has begun",
    within: 30_000,
  });
  return machines;
}

const mediaOf = (machines: readonly string[]) =>
  Promise.all(machines.map(async (id) => (await simulator.call<MachineTruth>("GET", `/devices/${id}`)).media));

const runsOf = (machines: readonly string[]) =>
  database.db.query<RunRow>(
    "select state, cancel_requested_at is not null as canceled from runs where machine_id = any($1) order by id",
    [machines],
  );

async function stop({ process }: Server): Promise<void> {
  process.signal("SIGTERM");
  expect(await process.exited, process.transcript()).toEqual({ code: 0, signal: null });
}

describe("a server that is stopped", { timeout: 120_000 }, () => {
  test("hands its runs over by default: they are as they were, and the next one ends them", async () => {
    const server = await serve();
    const machines = await startRepaves(server, 2);
    await stop(server);
    for (const run of await runsOf(machines)) expect(run).toEqual({ state: "RUNNING", canceled: false });
    const successor = await serve();
    await eventually(async () => (await runsOf(machines)).every(({ state }) => state === "SUCCEEDED"), {
      what: "the runs have succeeded",
      within: 60_000,
      seen: successor.process.transcript,
    });
    await stop(successor);
  });

  test("with --cancel-runs cancels them, and undoes what they had begun, before it ends", async () => {
    const server = await serve({}, ["--cancel-runs"]);
    const machines = await startRepaves(server, 3);
    await stop(server);
    for (const run of await runsOf(machines)) expect(run).toEqual({ state: "CANCELED", canceled: true });
    expect(await mediaOf(machines)).toEqual([null, null, null]);
    const [event] = await database.db.query<{ actor: string }>(
      "select j.actor from journal j join runs r on r.id = j.id where j.type = 'cancel_requested' and r.machine_id = $1",
      [machines[0]],
    );
    expect(event?.actor).toBe("shutdown");
  });

  test("with shutdown.runs = cancel ends in time also when the runs cannot, and the next one ends them", async () => {
    const server = await serve({ MILLWRIGHT_SHUTDOWN_RUNS: "cancel", MILLWRIGHT_SHUTDOWN_CANCEL_WITHIN: "1s" });
    const [machine = ""] = await startRepaves(server, 1);
    for (const type of ["hang", "ssh_hang"])
      await simulator.call("POST", "/faults", { device: machine, fault: { type } });
    await stop(server);
    expect(await runsOf([machine])).toEqual([{ state: "RUNNING", canceled: true }]);
    await simulator.call("DELETE", "/faults");
    const successor = await serve();
    await eventually(async () => (await runsOf([machine])).every(({ state }) => state === "CANCELED"), {
      what: "the run is canceled",
      within: 40_000,
      seen: successor.process.transcript,
    });
    await stop(successor);
  });
});

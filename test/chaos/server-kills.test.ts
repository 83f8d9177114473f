import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSecretStore } from "../../src/store/access/secrets.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import type { TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import type { MachineTruth } from "../support/machine-site.ts";
import {
  expectStop,
  type KilledServers,
  letLeasesEnd,
  openKilledServers,
} from "../support/processes/killed-servers.ts";
import type { ServerProcess } from "../support/processes/server-process.ts";
import { type SimulatorProcess, startSimulatorProcess } from "../support/processes/simulator-process.ts";
import { putSiteOnRecord } from "../support/run-bench.ts";

/**
 * Kill -9 of whole servers in the middle of a REPAVE: the next one on the same database finishes it, the machine shows each effect
 * once, and the log has no hole. `run-kills.test.ts` goes through every fail point with as much of a server as carries out runs.
 */
/** The reboot into the network and the one into the installer. */
const EFFECTS = { resets: 2, installs_started: 1, installs: 1, joins_started: 1, joins: 1 };
const STEPS = ["set-netboot", "reboot-to-netboot", "repave-image", "join-cluster", "verify-in-cluster"];

const kills: readonly string[] = [
  "create:inserted:run",
  "committer:inside:run:PENDING",
  ...[2, 4, 7, 11].map((pass) => `controller:handled:run:RUNNING@${pass}`),
  ...[3, 6].map((pass) => `committer:after:run:RUNNING@${pass}`),
];

let servers: KilledServers;
let simulator: SimulatorProcess;
/** Machines that no test has had yet. */
let unused: string[];

beforeAll(async () => {
  servers = await openKilledServers({ MILLWRIGHT_EXPLORER_INTERVAL: "1h" });
  const { prepared, keyFile } = servers;
  simulator = await startSimulatorProcess(servers.bench, { site: "racks=1", seed: 3, speed: 400 });
  const secrets = openSecretStore({ keyFile });
  const deps = { db: prepared.db, stores: allStores, secrets, maxFindByIds: 100 };
  const simulated = await putSiteOnRecord(deps, simulator.call);
  unused = simulated.map(({ machine_id }) => machine_id);
  await prepared.close();
}, 90_000);

afterAll(() => servers.close());

interface RunJson {
  readonly runId: string;
  readonly phase: string;
  readonly currentStep?: string;
  readonly error?: { readonly message: string };
  readonly steps?: readonly { readonly name: string; readonly state: string; readonly retryCount?: number }[];
}

describe("a server killed at", { concurrent: true, timeout: 180_000 }, () => {
  test.for(kills)("%s leaves nothing lost, doubled or half done", async (failPoint, { onTestFinished, expect }) => {
    const machineId = unused.shift();
    if (machineId === undefined) throw new Error("there is no machine left");
    const { database, kill, succeed } = await servers.openSite(onTestFinished);
    const before = await truth(machineId);

    await kill(failPoint, (victim) => startRun(victim, machineId));
    await letLeasesEnd(database);
    const atDeath = await readRun(database);
    const successor = await succeed();
    const { runId } = await startRun(successor, machineId); // as its caller would, who has had no answer
    const run = await ended(successor, runId);
    await expectStop(successor);

    expect(run.phase, run.error?.message).toBe("SUCCEEDED");
    expect(run.steps?.every(({ retryCount = 0 }) => retryCount === 0)).toBe(true);
    expect(run.steps?.map(({ name }) => name)).toEqual(STEPS);
    await expectWholeLog(database, runId, STEPS);
    expectSameIntents(atDeath, await readRun(database));
    const seen = effectsSince(before, await truth(machineId));
    expect(seen).toMatchObject(EFFECTS);
    expect(await database.db.query("select * from claims")).toEqual([]);
    expect(await database.db.query("select * from runs")).toHaveLength(1);
  });
});

const truth = (id: string) => simulator.call<MachineTruth>("GET", `/devices/${id}`);

const effectsSince = (before: MachineTruth, after: MachineTruth): Record<string, number> =>
  Object.fromEntries(Object.entries(after.effects).map(([name, count]) => [name, count - (before.effects[name] ?? 0)]));

const startRun = (server: ServerProcess, machineId: string) =>
  server.ask<RunJson>(
    "baremetal.v1.RunService/StartRun",
    { requestId: "once", machineId, type: "REPAVE" },
    servers.token,
  );

async function ended(server: ServerProcess, runId: string): Promise<RunJson> {
  let run: RunJson | undefined;
  return eventually(
    async () => {
      run = await server.ask<RunJson>("baremetal.v1.RunService/GetRun", { runId }, servers.token);
      return !["PENDING", "RUNNING"].includes(run.phase) && run;
    },
    { what: `${runId} has ended`, within: 120_000, seen: () => `${JSON.stringify(run)}${server.process.transcript()}` },
  );
}

interface RunOnRecord {
  readonly steps: readonly StepOnRecord[];
}
interface StepOnRecord {
  readonly name: string;
  readonly evidence: object | null;
}

async function readRun({ db }: TestDatabase): Promise<RunOnRecord | undefined> {
  const [run] = await db.query<RunOnRecord>("select coalesce(facts -> 'steps', '[]') as steps from runs");
  return run;
}

/** What was begun was gone on with, and not begun anew. */
function expectSameIntents(atDeath: RunOnRecord | undefined, atEnd: RunOnRecord | undefined): void {
  for (const { name, evidence } of atDeath?.steps ?? [])
    expect(atEnd?.steps.find((step) => step.name === name)?.evidence).toEqual(evidence);
}

async function expectWholeLog({ db }: TestDatabase, runId: string, steps: readonly string[]): Promise<void> {
  const rows = await db.query<{ seq: number; text: string }>(
    "select seq, convert_from(data, 'UTF8') as text from run_logs where run_id = $1 order by seq",
    [runId],
  );
  expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, index) => index + 1));
  const said = rows.map(({ text }) => text).join("");
  const marks = said.match(/^step \S+ (begins|is done)/gm);
  expect(marks).toEqual(steps.flatMap((name) => [`step ${name} begins`, `step ${name} is done`]));
}

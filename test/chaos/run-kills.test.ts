import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LEASE_IN_DATABASE } from "../../src/engine/lease.ts";
import { createPlan, type StepInput } from "../../src/services/plans.ts";
import { allThings } from "../../src/store/all-things.ts";
import { openSecretStore } from "../../src/store/secrets.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import type { MachineTruth } from "../support/machine-site.ts";
import { openProcessBench, type ProcessBench } from "../support/process-bench.ts";
import { putSiteOnRecord, tester } from "../support/run-bench.ts";
import { adminToken, type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { type SimulatorProcess, startSimulatorProcess } from "../support/simulator-process.ts";

/**
 * Kill -9 in the middle of runs: the next server finishes them, the machine shows each effect once, and the log has no hole.
 *
 * The looks at a run of one step are, in order: 1 notes the intent with its evidence, 2 announces the action, 3 acts, and those
 * after it ask for the proof.
 */
interface Work {
  readonly steps: readonly StepInput[];
  /** What the machine must have been through. */
  readonly effects: Readonly<Record<string, number>>;
  /** For the table, where there is nothing to count. */
  readonly proof?: string;
  /** Before the run: a machine that is not as it came from the factory. */
  readonly prepare?: (id: string) => Promise<unknown>;
}

const only = (kind: string, payload: Readonly<Record<string, string>> = {}): readonly StepInput[] => [
  { name: kind, kind, payload, timeoutSeconds: 300, maxRetries: 0 },
];

const WORK: Readonly<Record<string, Work>> = {
  reboot: { steps: only("reboot", { mode: "bmc" }), effects: { resets: 1, boots: 1 } },
  netboot: { steps: only("netboot", { mode: "PXE" }), effects: { resets: 0, boots: 0, boot_override_changes: 1 } },
  repave: {
    steps: only("repave", { image_ref: "ubuntu:22.04-k8s" }),
    effects: { resets: 1, installs_started: 1, installs: 1 },
  },
  join: { steps: only("join"), effects: { resets: 0, joins_started: 1, joins: 1 } },
  verify: {
    steps: only("verify"),
    effects: { resets: 0, joins_started: 0 },
    proof: "nothing changed on the machine",
    prepare: (id) => simulator.call("POST", `/devices/${id}/join`, { cluster: "default-cluster" }),
  },
  ssh: {
    steps: only("ssh", { script_ref: "verify_network.sh" }),
    effects: { resets: 0, boots: 0 },
    proof: "one start mark, under which the machine starts a script once",
  },
  rma: { steps: only("rma", { reason: "broken" }), effects: { resets: 1, power_changes: 1 } },
};
/** Of the whole plan: the reboot into the network and the one into the installer. */
const REPAVE_EFFECTS = { resets: 2, installs_started: 1, installs: 1, joins_started: 1, joins: 1 };
const REPAVE = ["set-netboot", "reboot-to-netboot", "repave-image", "join-cluster", "verify-in-cluster"];

/** Where what was done is lost, where it was announced and not begun, and where it was done and written. */
const SHORT = [
  "controller:handled:run:RUNNING@3",
  "committer:inside:run:RUNNING@2",
  "committer:after:run:RUNNING@2",
  "committer:after:run:RUNNING@3",
  "run-logs:appended:run@2",
];
const POINTS = ["controller:loaded", "controller:handled", "committer:before", "committer:inside", "committer:after"];
const EVERY = [
  ...[...POINTS, "transitions:locked", "transitions:journaled"].flatMap((point) =>
    [1, 2, 3].map((pass) => `${point}:run:RUNNING@${pass}`),
  ),
  ...[1, 2].map((pass) => `run-logs:appended:run@${pass}`),
];
const LONG = process.env.CHAOS_LONG === "1";

interface Kill {
  readonly work: string;
  readonly failPoint: string;
}

const kills: readonly Kill[] = [
  ...Object.keys(WORK).flatMap((work) => (LONG ? EVERY : SHORT).map((failPoint) => ({ work, failPoint }))),
  ...[
    "create:inserted:run",
    "controller:handled:run:PENDING",
    "committer:inside:run:PENDING",
    "committer:after:run:PENDING",
  ].map((failPoint) => ({ work: "reboot", failPoint })),
  ...[5, 8, 11, 14, 17].map((pass) => ({ work: "REPAVE", failPoint: `controller:handled:run:RUNNING@${pass}` })),
  ...[6, 12, 16].map((pass) => ({ work: "REPAVE", failPoint: `committer:after:run:RUNNING@${pass}` })),
];

let bench: ProcessBench;
let prepared: TestDatabase;
let simulator: SimulatorProcess;
let token: string;
const machines: string[] = [];
const table: string[] = [];

const settings = () => ({
  MILLWRIGHT_SECRET_KEY_FILE: join(bench.directory, "secret-key"),
  MILLWRIGHT_MONITOR_INTERVAL: "1h",
  MILLWRIGHT_EXPLORER_INTERVAL: "1h",
});

beforeAll(async () => {
  bench = openProcessBench();
  const racks = Math.ceil(kills.length / 18);
  simulator = await startSimulatorProcess(bench, { site: `racks=${racks}`, seed: 3, speed: 400 });
  prepared = await createTestDatabase();
  token = await adminToken(prepared);
  const secrets = openSecretStore({ keyFile: settings().MILLWRIGHT_SECRET_KEY_FILE });
  const deps = { db: prepared.db, stores: allThings, secrets, maxFindByIds: 100 };
  const simulated = await putSiteOnRecord(deps, simulator.call);
  machines.push(...simulated.map(({ machine_id }) => machine_id));
  for (const [name, { steps }] of Object.entries(WORK))
    await createPlan(deps, tester, { planId: `plan-${name}`, displayName: name, steps });
  await prepared.close();
}, 90_000);

afterAll(async () => {
  const rows = [...table].sort().join("\n");
  process.stdout.write(`\n| Run | Killed at | Where it was | Outcome |\n|---|---|---|---|\n${rows}\n\n`);
  await bench.close();
  await prepared.drop();
});

interface RunJson {
  readonly runId: string;
  readonly phase: string;
  readonly currentStep?: string;
  readonly error?: { readonly message: string };
  readonly steps?: readonly { readonly name: string; readonly state: string; readonly retryCount?: number }[];
}

describe("a server killed at", { concurrent: true, timeout: 180_000 }, () => {
  test.for(kills.map((kill, index) => [kill.failPoint, kill.work, index] as const))(
    "%s of %s leaves nothing lost, doubled or half done",
    async ([failPoint, work, index], { onTestFinished, expect }) => {
      const machineId = machines[index] ?? "";
      const database = await createTestDatabase({ clone: prepared });
      onTestFinished(() => database.drop());
      await WORK[work]?.prepare?.(machineId);
      const before = await truth(machineId);

      await killDuring({ database, machineId, work, failPoint, index });
      await letLeasesEnd(database);
      const atDeath = await readRun(database);
      const successor = await startServerProcess(bench, {
        command: "serve",
        name: `successor-${index}`,
        databaseUrl: database.url,
        env: settings(),
      });
      const { runId } = await startRun(successor, machineId, work); // as its caller would, who has had no answer
      const run = await ended(successor, runId);
      successor.process.signal("SIGTERM");
      expect(await successor.process.exited).toEqual({ code: 0, signal: null });

      expect(run.phase, run.error?.message).toBe("SUCCEEDED");
      expect(run.steps?.every(({ retryCount = 0 }) => retryCount === 0)).toBe(true);
      const names = WORK[work]?.steps.map(({ name }) => name) ?? REPAVE;
      expect(run.steps?.map(({ name }) => name)).toEqual(names);
      await expectWholeLog(database, runId, names);
      expectSameIntents(atDeath, await readRun(database));
      const seen = effectsSince(before, await truth(machineId));
      expect(seen).toMatchObject(WORK[work]?.effects ?? REPAVE_EFFECTS);
      expect(await database.db.query("select * from claims")).toEqual([]);
      expect(await database.db.query("select * from runs")).toHaveLength(1);
      const proof = WORK[work]?.proof ?? "each effect once";
      table.push(`| ${work} | \`${failPoint}\` | ${whereWas(atDeath)} | SUCCEEDED, ${proof} |`);
    },
  );
});

const truth = (id: string) => simulator.call<MachineTruth>("GET", `/devices/${id}`);

const effectsSince = (before: MachineTruth, after: MachineTruth): Record<string, number> =>
  Object.fromEntries(Object.entries(after.effects).map(([name, count]) => [name, count - (before.effects[name] ?? 0)]));

const startRun = (server: ServerProcess, machineId: string, work: string) =>
  server.ask<RunJson>(
    "baremetal.v1.RunService/StartRun",
    { requestId: "once", machineId, ...(work === "REPAVE" ? { type: work } : { planId: `plan-${work}` }) },
    token,
  );

async function ended(server: ServerProcess, runId: string): Promise<RunJson> {
  let run: RunJson | undefined;
  return eventually(
    async () => {
      run = await server.ask<RunJson>("baremetal.v1.RunService/GetRun", { runId }, token);
      return !["PENDING", "RUNNING"].includes(run.phase) && run;
    },
    { what: `${runId} has ended`, within: 120_000, seen: () => `${JSON.stringify(run)}${server.process.transcript()}` },
  );
}

async function killDuring(kill: {
  database: TestDatabase;
  machineId: string;
  work: string;
  failPoint: string;
  index: number;
}): Promise<void> {
  const victim = await startServerProcess(bench, {
    command: "serve",
    name: `victim-${kill.index}`,
    databaseUrl: kill.database.url,
    env: { ...settings(), MILLWRIGHT_FAILPOINT: kill.failPoint },
  });
  // The answer may or may not make it out before the end.
  await startRun(victim, kill.machineId, kill.work).catch(() => undefined);
  await eventually(async () => victim.process.hasExited(), {
    what: `the server dies at ${kill.failPoint}`,
    within: 60_000,
    seen: victim.process.transcript,
  });
  expect(await victim.process.exited).toEqual({ code: null, signal: "SIGKILL" });
}

/** As if the time had passed: their owner is dead, and makes no call any more. */
async function letLeasesEnd({ db }: TestDatabase): Promise<void> {
  await db.execute(
    `update work set lease_until = lease_until - $1 * interval '1 ms', wake_at = wake_at - $1 * interval '1 ms'
      where lease_owner is not null`,
    [LEASE_IN_DATABASE],
  );
}

interface RunOnRecord {
  readonly state: string;
  readonly steps: readonly StepOnRecord[];
}
interface StepOnRecord {
  readonly name: string;
  readonly state: string;
  readonly actedAt: string | null;
  readonly actingAt: string | null;
  readonly evidence: object | null;
}

async function readRun({ db }: TestDatabase): Promise<RunOnRecord | undefined> {
  const [run] = await db.query<RunOnRecord>("select state, coalesce(facts -> 'steps', '[]') as steps from runs");
  return run;
}

/** What was on record of the run when its server died. */
function whereWas(run: RunOnRecord | undefined): string {
  if (!run) return "not started";
  const step = run.steps.at(-1);
  if (!step) return run.state;
  const how = step.actedAt ? "acted" : step.actingAt ? "announced" : step.evidence ? "intent noted" : "begun";
  return `${step.name}: ${step.state === "RUNNING" ? how : step.state}`;
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

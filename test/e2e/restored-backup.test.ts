import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { silentLog } from "../../src/kernel/log.ts";
import { openSecretStore } from "../../src/store/access/secrets.ts";
import { createToken } from "../../src/store/access/tokens.ts";
import { openDatabase } from "../../src/store/postgres/database.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { type DebianPostgres, missingPostgres, startDebianPostgres } from "../support/counterparts/debian-postgres.ts";
import { needing } from "../support/counterparts/needing.ts";
import { eventually } from "../support/eventually.ts";
import type { MachineTruth } from "../support/machine-site.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { type ServerProcess, startServerProcess } from "../support/processes/server-process.ts";
import { type SimulatorProcess, startSimulatorProcess } from "../support/processes/simulator-process.ts";
import { putSiteOnRecord } from "../support/run-bench.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

/**
 * The worst night: a backup that was taken in the middle of three repaves is restored after they had ended. Servers in use must not be
 * installed again. The judge is what the machines have counted.
 */
const missing = missingPostgres();
const DATABASE = "site";
let bench: ProcessBench;
let postgres: DebianPostgres;
let simulator: SimulatorProcess;
let token: string;
let machines: string[];

beforeAll(async () => {
  if (missing !== "") return;
  bench = openProcessBench();
  postgres = await startDebianPostgres();
  await postgres.create(DATABASE);
  await migrate(postgres.urlOf(DATABASE), { log: silentLog });
  simulator = await startSimulatorProcess(bench, { site: "racks=1", seed: 5, speed: 60 });
  const db = openDatabase(postgres.urlOf(DATABASE), { log: silentLog, applicationName: "test" });
  const secrets = openSecretStore({ keyFile: join(bench.directory, "secret-key") });
  const simulated = await putSiteOnRecord({ db, stores: allStores, secrets, maxFindByIds: 100 }, simulator.call);
  machines = simulated.map(({ machine_id }) => machine_id);
  token = (await createToken(db, { name: "tester", roles: ["admin"], createdBy: "test" })).token;
  await db.close();
}, 120_000);
afterAll(async () => {
  await bench?.close();
  await postgres?.close();
});

const serve = (name: string): Promise<ServerProcess> =>
  startServerProcess(bench, {
    command: "serve",
    name,
    databaseUrl: postgres.urlOf(DATABASE),
    env: {
      MILLWRIGHT_SECRET_KEY_FILE: join(bench.directory, "secret-key"),
      MILLWRIGHT_MONITOR_INTERVAL: "1h",
      MILLWRIGHT_MONITOR_EVENTS: "false",
      MILLWRIGHT_EXPLORER_INTERVAL: "1h",
    },
  });

interface RunJson {
  readonly runId: string;
  readonly phase: string;
  readonly currentStep?: string;
}
const startRun = (server: ServerProcess, machineId: string) =>
  server.call<RunJson>(
    "baremetal.v1.RunService/StartRun",
    { requestId: `of ${machineId}`, machineId, type: "REPAVE" },
    token,
  );
const getRun = (server: ServerProcess, runId: string) =>
  server.ask<RunJson>("baremetal.v1.RunService/GetRun", { runId }, token);
/** What was done to the machines. Over SSH they are also only read. */
const effects = async () =>
  Promise.all(
    machines.slice(0, 4).map(async (id) => {
      const { ssh_commands: _, ...done } = (await simulator.call<MachineTruth>("GET", `/devices/${id}`)).effects;
      return done;
    }),
  );
const restoring = <T>(server: ServerProcess, method: string, body: object = {}) =>
  server.ask<T>(`millwright.v1.RestoreService/${method}`, body, token);

async function until<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> {
  let seen: unknown;
  return eventually(
    async () => {
      const found = await ask();
      seen = found;
      return found === undefined || found === false ? undefined : found;
    },
    { what, within: 120_000, seen: () => JSON.stringify(seen) },
  );
}

interface Review {
  readonly id: string;
  readonly state: string;
  readonly parked?: number;
  readonly findings: readonly { readonly sign: string }[];
}

describe.skipIf(missing !== "")(needing("a backup of three repaves in flight", missing), { timeout: 300_000 }, () => {
  test("touches no machine once it is restored, and people say what becomes of each", async () => {
    const first = await serve("first");
    const [a, b, c, d] = machines as [string, string, string, string];
    const runs = await Promise.all([a, b, c].map(async (id) => (await startRun(first, id)).body.runId));
    await until("all three are installing", async () => {
      const all = await Promise.all(runs.map((id) => getRun(first, id)));
      return all.every(({ phase, currentStep }) => phase === "RUNNING" && currentStep === "repave-image");
    });
    const backup = await postgres.dump(DATABASE);
    await until("all three have ended", async () => {
      const all = await Promise.all(runs.map((id) => getRun(first, id)));
      return all.every(({ phase }) => phase === "SUCCEEDED");
    });
    first.process.signal("SIGTERM");
    await first.process.exited;
    const before = await effects();
    await postgres.drop(DATABASE);
    await postgres.create(DATABASE);
    await postgres.restore(backup, DATABASE);

    // Two at once, which know nothing of what was before: one of them begins the review, and the other follows it.
    const [second, third] = await Promise.all([serve("second"), serve("third")]);
    const review = await until("the backup is sorted", async () => {
      const { review: shown } = await restoring<{ review: Review }>(second, "GetRestoreReview");
      return shown.state === "open" && shown;
    });
    const signs = review.findings.map(({ sign }) => sign);
    expect(signs).toContain("identity_changed");
    expect(new Set(signs).size).toBe(signs.length); // had both begun, each would have added its own
    expect(await postgres.sql(DATABASE, "select count(*) from restore_reviews")).toBe("1");
    const { review: other } = await restoring<{ review: Review }>(third, "GetRestoreReview");
    expect([other.id, other.findings]).toEqual([review.id, review.findings]);
    third.process.signal("SIGTERM");
    await third.process.exited;
    const { work } = await restoring<{ work: { kind: string; id: string; doing: string }[] }>(second, "ListParkedWork");
    expect(work.map(({ kind, id }) => `${kind}/${id}`).sort()).toEqual(runs.map((id) => `run/${id}`).sort());

    const ready = await second.get("/readyz");
    expect([ready.status, ready.text]).toEqual([200, expect.stringContaining(`restore review ${review.id}`)]);
    const refused = await startRun(second, d);
    expect(refused.text).toMatch(/failed_precondition.*restored from a backup.*millwright restore review/s);
    expect((await second.get("/metrics", token)).text).toMatch(/millwright_restore_parked\{kind="run"\} 3/);
    const system = await second.ask("millwright.v1.SystemService/GetSystem", {}, token);
    expect(system).toMatchObject({ restoreReview: review.id, parked: 3 });
    const told = [second, third].filter(({ process }) =>
      process.transcript().includes("the database was restored from a backup"),
    );
    expect(told).toHaveLength(1);

    const [adopted, abandoned, resumed] = runs as [string, string, string];
    const settle = (verdict: string, id: string) =>
      restoring<{ results: { error?: string; next?: string }[] }>(second, "SettleParkedWork", {
        ...{ things: [{ kind: "run", id }], verdict },
      });
    // Its machine was restarted after the backup: the run had come further than the backup knows.
    const objection = (await settle("PARKED_VERDICT_RESUME", resumed)).results[0];
    expect(objection?.error).toContain(`machine ${c} was restarted at`);
    expect(await settle("PARKED_VERDICT_ADOPT", adopted)).toMatchObject({ results: [{ kind: "run", id: adopted }] });
    expect((await settle("PARKED_VERDICT_ABANDON", abandoned)).results[0]?.error ?? "").toBe("");
    await until("the run that only looks has ended", async () => {
      const run = await getRun(second, adopted);
      return ["SUCCEEDED", "FAILED"].includes(run.phase) && run;
    });
    await until("the abandoned run has ended", async () => (await getRun(second, abandoned)).phase === "CANCELED");
    const stillOpen = await second.call("millwright.v1.RestoreService/EndRestoreReview", {}, token);
    expect(stillOpen.text).toContain("still has 1 parked things");
    expect((await getRun(second, resumed)).phase).toBe("RUNNING");
    expect((await settle("PARKED_VERDICT_ABANDON", resumed)).results[0]?.error ?? "").toBe("");
    expect(await restoring(second, "EndRestoreReview")).toMatchObject({ review: { state: "ended" } });
    await until("the last one has ended", async () => (await getRun(second, resumed)).phase === "CANCELED");

    expect(await effects()).toEqual(before);
    expect((await startRun(second, d)).status).toBe(200);
    second.process.signal("SIGTERM");
    await second.process.exited;
  });
});

import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Capability } from "../../../src/capabilities/provider.ts";
import { loadConfig } from "../../../src/config.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import type { AnyStep } from "../../../src/runs/model/step.ts";
import { serverSteps } from "../../../src/runs/steps/index.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { setMachineCredentials } from "../../../src/services/machine/credentials.ts";
import { registerMachine } from "../../../src/services/machine/machines.ts";
import { createPowerShelf } from "../../../src/services/power-shelf/power-shelves.ts";
import type { RunDeps } from "../../../src/services/run/deps.ts";
import { startRun } from "../../../src/services/run/starts.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import { createToken } from "../../../src/store/access/tokens.ts";
import { append } from "../../../src/store/lifecycle/journal.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { MIGRATIONS_DIRECTORY, migrate, planMigrations } from "../../../src/store/postgres/migrate.ts";
import { loadRunbooks } from "../../../src/wiring/runbook-files.ts";
import { type Server, startServer } from "../../../src/wiring/server.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { openRunReplica } from "../../support/processes/run-replica.ts";
import { NOTHING_ELSE } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/**
 * In the middle of an upgrade: the next version has migrated the database and works beside a replica of this one, which may also be
 * restarted. What only the next version knows is left to it.
 */
let database: TestDatabase;
let directory: string;
let token: string;
beforeAll(async () => {
  database = await createTestDatabase();
  directory = mkdtempSync(join(tmpdir(), "millwright-older-"));
  token = (await createToken(database.db, { name: "t", roles: ["admin"], createdBy: "test" })).token;
});
afterAll(async () => {
  await database.drop();
  rmSync(directory, { recursive: true });
});

const keyFile = () => join(directory, "secret-key");

/** This commit, as it is in production, with all that it has to complain about. */
async function startOlder(): Promise<{ server: Server; complaints: unknown[]; told: string[] }> {
  const complaints: unknown[] = [];
  const told: string[] = [];
  const complain = (fields: object, message: string) => {
    if (/balloon|levitating|float|s-1|"run-/.test(JSON.stringify([message, fields])))
      complaints.push([message, fields]);
  };
  const log = {
    ...silentLog,
    warn: complain,
    error: complain,
    info: (_: object, message: string) => void told.push(message),
  };
  const env = {
    MILLWRIGHT_DATABASE_URL: database.url,
    MILLWRIGHT_DATA_DIR: directory,
    MILLWRIGHT_SECRET_KEY_FILE: keyFile(),
    MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
  };
  const { config } = loadConfig({ env, argv: [], profile: "serve" });
  const server = await startServer({ config, log, version: "0.0.0", signal: new AbortController().signal });
  return { server, complaints, told };
}

async function call<T>({ httpUrl }: Server, method: string, body: object): Promise<T> {
  const answer = await fetch(`${httpUrl}/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  expect(answer.status, `${method}: ${text}`).toBe(200);
  return JSON.parse(text) as T;
}

/** What the next version does at its start, and what it then has of its own. */
async function nextVersionBegins(): Promise<void> {
  const { db } = database;
  const migrations = join(directory, "migrations");
  cpSync(MIGRATIONS_DIRECTORY, migrations, { recursive: true });
  writeFileSync(
    join(migrations, "9000_balloons.sql"),
    "create table balloons (id text primary key, state text); alter table power_shelves add column altitude int; alter table runs add column altitude int;",
  );
  expect(await migrate(database.url, { log: silentLog, directory: migrations })).toEqual(["9000_balloons"]);
  await db.execute("insert into balloons values ('b-1', 'rising')");
  await db.execute("insert into work (kind, id, wake_at) values ('balloon', 'b-1', now())");
  const entry = { kind: "balloon", id: "b-1", version: 1, type: "created", from: null, to: "rising", owner: null };
  await db.transaction(async (tx) => {
    await lockThings(tx, [entry]);
    await append(tx, [{ ...entry, actor: "test", reason: null, data: {} }]);
  });
  await db.execute("update power_shelves set state = 'levitating', altitude = 3");
  // As StartRun of the next version leaves it.
  await db.execute(
    `update runs set plan = jsonb_set(plan, '{steps}', '[{"name": "float", "kind": "float", "timeoutSeconds": 1, "maxRetries": 0, "payload": {}}]')`,
  );
}

const left = () =>
  database.db.query<{ kind: string; failures: number; owner: string | null; isDue: boolean; cause: string | null }>(
    `select w.kind, w.failures, w.lease_owner as owner, w.wake_at <= now() as "isDue",
            coalesce(w.last_cause, r.outcome -> 'cause' ->> 'code') as cause
       from work w left join runs r on w.kind = 'run' and r.id = w.id
      where w.kind in ('balloon', 'power_shelf', 'run') order by w.kind`,
  );

/** It has had each of them in its hands, however often they fell due, and has given them back. */
async function isLeftAlone(): Promise<void> {
  for (let times = 0; times < 3; times += 1) {
    await database.db.execute(
      "update work set wake_at = now() where kind in ('run', 'power_shelf') and lease_owner is null",
    );
    await database.db.execute("notify millwright");
    await eventually(
      async () =>
        (await left()).every(({ kind, owner, isDue, cause }) =>
          kind === "balloon" ? isDue : owner === null && !isDue && cause === "not_on_this_server",
        ),
      { what: "all of it is left", seen: async () => JSON.stringify(await left()) },
    );
  }
  // A step that only the next version knows has not begun, so that its time does not run.
  expect(await database.db.query("select coalesce(facts -> 'steps', '[]') as steps from runs")).toEqual([
    { steps: [] },
  ]);
  expect(await left()).toMatchObject([
    { kind: "balloon", failures: 0, owner: null, cause: null },
    { kind: "power_shelf", failures: 0 },
    { kind: "run", failures: 0 },
  ]);
}

/** A shelf, and a run on a machine, that nobody has worked on yet. */
async function putOnRecord(): Promise<void> {
  const { db } = database;
  const secrets = openSecretStore({ keyFile: keyFile() });
  const deps: ServiceDeps = { db, stores: allStores, secrets, maxFindByIds: 100 };
  const caller = { name: "t", roles: ["admin"], address: null };
  const signIn = { bmcUsername: "root", bmcPassword: "secret" };
  await createPowerShelf(deps, caller, {
    ...{ id: "s-1", name: "", rackId: undefined, bmcEndpoint: "192.0.2.1", ...signIn, bmcScheme: "", trust: "pin" },
    ...{ bmcMac: "02:00:00:00:00:01", requestId: "request-1" },
  });
  const spec = { ...NOTHING_ELSE, serial: "S-1", macAddresses: [], bmcEndpoint: "192.0.2.2" };
  const ssh = { sshEndpoint: "", sshHostKey: "", jumpHosts: [] };
  await registerMachine(deps, caller, { id: "m-1", labels: {}, spec: { ...spec, ...ssh } });
  await setMachineCredentials(deps, caller, { machineId: "m-1", ...signIn, sshUsername: "", sshPrivateKey: "" });
  const runDeps: RunDeps = {
    ...deps,
    steps: serverSteps,
    runbooks: loadRunbooks(),
    capabilitiesOf: () => new Set<Capability>(["reset", "system"]),
    clusterProbes: null,
    takesSeeds: () => true,
    seedsAt: null,
  };
  await startRun(runDeps, caller, { requestId: "r", machineId: "m-1", type: "REBOOT", planId: "", params: {} });
  // Nobody is to look for the machine: there is none.
  await db.execute("delete from condition_looks");
}

const float: AnyStep = {
  ...(serverSteps.get("reboot") as AnyStep),
  ...{ kind: "float", needs: [], alsoNeeds: () => [], before: async () => ({}), act: async () => {} },
  probe: async () => "done" as const,
};

test("a replica of the version before goes on beside the next one, may be restarted, and leaves alone what it does not know", async () => {
  await putOnRecord();
  await nextVersionBegins();
  expect(await planMigrations(database.url)).toEqual([]);
  for (const times of ["started", "restarted"]) {
    const { server, complaints, told } = await startOlder();
    expect(told, times).toContain("a later version has migrated the database; this one works on it");
    await isLeftAlone();
    const listed = await call<object>(server, "millwright.v1.PowerShelfService/ListPowerShelves", {});
    expect(listed).toMatchObject({ powerShelves: [{ id: "s-1", state: "levitating" }] });
    const { runs } = await call<{ runs: unknown[] }>(server, "baremetal.v1.RunService/ListRuns", {});
    expect(runs).toMatchObject([{ phase: "RUNNING", plan: { steps: [{ name: "float" }] } }]);
    await call(server, "millwright.v1.HistoryService/ListEvents", {});
    expect((await fetch(`${server.httpUrl}/readyz`)).status).toBe(200);
    await server.stop();
    expect(complaints).toEqual([]);
  }
  // The run goes on where the next version is, although its step may take a second only.
  const newer = openRunReplica({
    ...{ url: database.url, keyFile: keyFile(), instance: "newer" },
    steps: new Map([...serverSteps, ["float", float]]),
  });
  await newer.work();
  await database.db.execute("update work set wake_at = now() where kind = 'run'");
  await database.db.execute("notify millwright");
  const states = () => database.db.query("select state from runs");
  await eventually(async () => (await states()).every(({ state }) => state !== "RUNNING"), {
    what: "the run has ended",
    seen: async () => JSON.stringify(await states()),
  });
  expect(await states()).toEqual([{ state: "SUCCEEDED" }]);
  await newer.stop();
}, 120_000);

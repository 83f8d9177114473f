import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startSimulator } from "../../../simulator/simulator.ts";
import { runCli } from "../../../src/cli/run-cli.ts";
import { loadConfig } from "../../../src/config.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import { createToken } from "../../../src/store/access/tokens.ts";
import * as claims from "../../../src/store/lifecycle/claims/claims.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { wake } from "../../../src/store/lifecycle/work.ts";
import { type Server, startServer } from "../../../src/wiring/server.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { wishFor } from "../../support/claims.ts";
import { createFakeTerminal } from "../../support/cli/fake-terminal.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import type { MachineTruth } from "../../support/machine-site.ts";
import { type Control, controlOf, putSiteOnRecord } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** What an operator does with a restored backup, by the command line; the machines' own counters say what was done to them. */
let database: TestDatabase;
let directory: string;
let simulator: Awaited<ReturnType<typeof startSimulator>>;
let control: Control;
let token: string;
let machines: readonly string[];
beforeAll(async () => {
  database = await createTestDatabase();
  directory = mkdtempSync(join(tmpdir(), "millwright-review-"));
  simulator = await startSimulator({ dataDir: join(directory, "sim"), seed: 5, speed: 400, site: "racks=1" });
  control = controlOf(simulator.controlUrl);
  const secrets = openSecretStore({ keyFile: join(directory, "secret-key") });
  const simulated = await putSiteOnRecord({ db: database.db, stores: allStores, secrets, maxFindByIds: 100 }, control);
  machines = simulated.map(({ machine_id }) => machine_id);
  await database.db.execute("update machines set state = 'READY'");
  await database.db.execute("delete from condition_looks"); // nobody reads them meanwhile
  token = (await createToken(database.db, { name: "t", roles: ["admin"], createdBy: "test" })).token;
});
afterAll(async () => {
  await simulator.close();
  await database.drop();
  rmSync(directory, { recursive: true });
});

function serve(restored?: string): Promise<Server> {
  const env = {
    MILLWRIGHT_DATABASE_URL: database.url,
    MILLWRIGHT_DATA_DIR: directory,
    MILLWRIGHT_SECRET_KEY_FILE: join(directory, "secret-key"),
    MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_BMC_ALLOWED_NETWORKS: "127.0.0.0/8",
    ...(restored !== undefined && { MILLWRIGHT_DATABASE_RESTORED: restored }),
  };
  const { config } = loadConfig({ env, argv: [], profile: "serve" });
  return startServer({ config, log: silentLog, version: "0.0.0", signal: new AbortController().signal });
}

const headers = () => ({ "content-type": "application/json", authorization: `Bearer ${token}` });

async function ask<T>({ httpUrl }: Server, method: string, path: string, body?: object): Promise<T> {
  const answer = await fetch(`${httpUrl}${path}`, {
    method,
    headers: headers(),
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  expect(answer.ok, `${path}: ${text}`).toBe(true);
  return JSON.parse(text) as T;
}

const reboot = async (server: Server, machineId: string): Promise<string> =>
  (
    await ask<{ runId: string }>(server, "POST", "/baremetal.v1.RunService/StartRun", {
      ...{ requestId: "r", machineId, type: "REBOOT" },
    })
  ).runId;

async function cli({ httpUrl }: Server, line: string): Promise<{ code: number; out: string; err: string }> {
  const terminal = createFakeTerminal();
  const args = ["--server", httpUrl, "--token", token, ...line.split(" ")];
  const code = await runCli(args, { version: "1", terminal });
  return { code, out: terminal.out(), err: terminal.err() };
}

/** All that was done to the machine. Over SSH it is also only read. */
const effects = async (id: string) => {
  const { ssh_commands: _, ...done } = (await control<MachineTruth>("GET", `/devices/${id}`)).effects;
  return done;
};

const phaseOf = async (id: string) =>
  (await database.db.query<{ state: string }>("select state from runs where id = $1", [id]))[0]?.state;
const becomes = (id: string, phase: string) =>
  eventually(async () => (await phaseOf(id)) === phase, {
    what: `${id} is ${phase}`,
    seen: async () => `${await phaseOf(id)}`,
  });

const NODE = "02:99:00:00:00:01";
const bootOf = async ({ httpUrl }: Server) => (await fetch(`${httpUrl}/api/v1/boot?mac=${NODE}`)).text();

test("parked runs, claims and installs wait for the operator, who goes through them by the command line", async () => {
  const { db } = database;
  const [resumed = "", queued = "", unreadable = "", adopted = ""] = machines;
  // What the backup holds: four runs that were about to begin, one of them behind a rack that has its machine, and an approved node.
  const before = await serve();
  const boot = { method: "chain", chain_url: "http://192.0.2.9/installer.ipxe" };
  await ask(before, "POST", "/api/v1/workflows", { id: "w", name: "w", boot });
  const { data: node } = await ask<{ data: { id: string } }>(before, "POST", "/api/v1/nodes", { mac_address: NODE });
  await ask(before, "PATCH", `/api/v1/nodes/${node.id}/state`, { state: "pending", workflow_id: "w" });
  expect(await bootOf(before)).toContain("installer.ipxe");
  const rack = { kind: "rack", id: "another-rack" };
  const keys = [resumed, queued, unreadable, adopted].map((id) => ({ kind: "machine", id }));
  await db.transaction(async (tx) => {
    await lockThings(tx, [rack, ...keys]);
    await claims.acquire(
      tx,
      keys.map((key) => wishFor(key, rack, "maintenance")),
    );
  });
  const runs = await Promise.all(keys.map(({ id }) => reboot(before, id)));
  await eventually(
    async () => (await db.query("select from claims where holder_kind = 'run' and granted_at is null")).length === 4,
    { what: "the runs wait for their machines" },
  );
  await before.stop();
  await db.execute("delete from claims where holder_id = 'another-rack' and thing_id <> $1", [queued]);
  await db.execute("update runs set plan = '{}' where id = $1", [runs[2]]);
  const counted = await Promise.all(machines.map(effects));

  const server = await serve("monday");
  const [a = "", b = "", c = "", d = ""] = runs;
  await eventually(async () => (await cli(server, "restore review")).out.includes("open"), { what: "all is sorted" });
  const review = await cli(server, "restore review");
  expect(review).toMatchObject({ code: 0 });
  expect(review.out).toContain("a server was started with --restored monday");
  for (const thing of [...runs.map((id) => `run/${id}`), `install/${node.id}`]) expect(review.out).toContain(thing);
  const listed = JSON.parse((await cli(server, "restore list --filter status=waiting -o json")).out);
  expect(listed).toHaveLength(5);
  expect((await cli(server, "restore list")).out).toMatch(new RegExp(`run/${c}\\s+waiting\\s+cannot be read`));

  // The machine of the queued run becomes free, and the node boots: neither is anybody's decision.
  await db.transaction(async (tx) => {
    await lockThings(tx, [rack, { kind: "machine", id: queued }, { kind: "run", id: b }]);
    await claims.releaseAll(tx, [rack]);
    await wake(
      tx,
      runs.map((id) => ({ kind: "run", id })),
    );
  });
  expect(await bootOf(server)).not.toContain("installer.ipxe");
  const refused = await fetch(`${server.httpUrl}/baremetal.v1.RunService/StartRun`, {
    ...{ method: "POST", headers: headers() },
    body: JSON.stringify({ requestId: "new", machineId: machines[5], type: "REBOOT" }),
  });
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("restored from a backup")]);
  const early = await cli(server, "restore end");
  expect([early.code, early.err]).toEqual([4, expect.stringContaining("still has 5 parked things")]);

  // One that cannot be read keeps nobody from deciding on the others, and is itself decided on.
  const looks = await cli(server, `restore adopt run/${c} run/${d} run/no-such-run`);
  expect(looks.code).toBe(1);
  expect(looks.out).toMatch(
    new RegExp(`run/${c}\\s+still parked.*cannot be read.*millwright restore abandon run/${c}`),
  );
  expect(looks.out).toMatch(new RegExp(`run/${d}\\s+adopt: done`));
  expect((await cli(server, `restore abandon run/${b} run/${c}`)).code).toBe(0);
  await becomes(b, "CANCELED");
  await eventually(async () => /FAILED|SUCCEEDED/.test(`${await phaseOf(d)}`), {
    what: "the run that only looks ends",
  });
  expect(await Promise.all(machines.map(effects))).toEqual(counted);

  // The machine answers, and was not restarted since: the run goes on, and does what it was there for, once.
  const goesOn = await cli(server, `restore resume run/${a}`);
  expect([goesOn.code, goesOn.out]).toEqual([0, expect.stringMatching(/resume: done\s+machine .* is on/)]);
  await becomes(a, "SUCCEEDED");
  const others = await Promise.all(machines.slice(1).map(effects));
  expect(others).toEqual(counted.slice(1));
  expect(await effects(resumed)).not.toEqual(counted[0]);
  expect((await effects(resumed)).resets).toBe((counted[0]?.resets ?? 0) + 1);

  // Nobody can ask the node, which has no BMC on record: a person has to say so.
  const unasked = await cli(server, "restore resume --all --yes");
  expect([unasked.code, unasked.out]).toEqual([
    1,
    expect.stringMatching(/still parked.*has no BMC endpoint.*resume --force/),
  ]);
  const last = await cli(server, "restore resume --all --force --yes");
  expect([last.code, last.out]).toEqual([0, expect.stringContaining("has ended: devices take commands again")]);
  expect(await bootOf(server)).toContain("installer.ipxe");
  expect((await cli(server, "restore end")).code).toBe(0);
  await server.stop();

  // The pod is restarted with the same name, and nothing is parked again.
  const again = await serve("monday");
  await becomes(await reboot(again, machines[4] ?? ""), "SUCCEEDED");
  expect((await cli(again, "restore review")).out).toMatch(/State:\s+ended/);
  await again.stop();
}, 120_000);

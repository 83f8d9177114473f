import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { METRICS } from "../../src/telemetry/metric-definitions.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openProcessBench, type ProcessBench, ROOT } from "../support/processes/process-bench.ts";
import {
  adminToken,
  type ServerProcess,
  spawnServer,
  startServerProcess,
} from "../support/processes/server-process.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

let bench: ProcessBench;
let database: TestDatabase;
let server: ServerProcess;
let token: string;
let configFile: string;

beforeAll(async () => {
  bench = openProcessBench();
  database = await createTestDatabase();
  token = await adminToken(database);
  configFile = join(bench.directory, "millwright.yaml");
  writeFileSync(configFile, "log: { level: info }\n");
  server = await startServerProcess(bench, {
    ...{ command: "serve", databaseUrl: database.url },
    flags: ["--config", configFile],
  });
});
afterAll(async () => {
  await bench.close();
  await database.drop();
});

describe("operations", () => {
  test("/healthz says that the process answers", async () => {
    expect(await server.get("/healthz")).toMatchObject({ status: 200, text: '{"status":"alive"}' });
  });

  test("/readyz says that it can do its work, part by part", async () => {
    const { status, text } = await server.get("/readyz");
    expect({ status, ...JSON.parse(text) }).toEqual({
      status: "ready",
      checks: { database: "ok", engine: "ok", firmware: "ok", clock: "ok", restore: "ok" },
    });
    expect(status).toBe(200);
  });

  test("/metrics has every metric that the reference names, and asks who wants to know", async () => {
    expect((await server.get("/metrics")).status).toBe(401);
    const { status, text, headers } = await server.get("/metrics", token);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
    for (const name of Object.keys(METRICS)) expect(text).toContain(`# TYPE ${name} `);
    expect(text).toMatch(/^process_resident_memory_bytes \d+/m);
  });

  test("grpc.health.v1 says SERVING to whoever asks", async () => {
    // It looks at itself from time to time, for the first time soon after its start.
    await eventually(
      async () => {
        const { status, body } = await server.call<{ status?: string }>("grpc.health.v1.Health/Check", {});
        return status === 200 && body.status === "SERVING";
      },
      { what: "it says SERVING", seen: server.process.transcript },
    );
  });

  test("a database that takes no writes, and one that goes away, is told by /readyz and survived", async () => {
    const own = await createTestDatabase();
    const ownToken = await adminToken(own);
    const lonely = await startServerProcess(bench, { command: "serve", name: "lonely", databaseUrl: own.url });
    await own.db.execute(`alter database ${own.name} set default_transaction_read_only = on`);
    await own.db.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );
    await eventually(async () => (await lonely.get("/readyz")).status === 503, {
      what: "it is no longer ready",
      seen: lonely.process.transcript,
    });
    const creation = { name: "late", roles: ["viewer"] };
    expect(await lonely.call("millwright.v1.TokenService/CreateToken", creation, ownToken)).toMatchObject({
      status: 503,
      body: { code: "unavailable", message: expect.stringContaining("the database takes no writes: it is read-only") },
    });
    await own.drop();
    expect((await lonely.get("/healthz")).status).toBe(200);
    expect((await lonely.call("forge.Forge/FindPowerShelves", {}, ownToken)).status).toBe(503);
    lonely.process.signal("SIGTERM");
    expect(await lonely.process.exited, lonely.process.transcript()).toEqual({ code: 0, signal: null });
  });
});

describe("SIGHUP", () => {
  const logs = (line: RegExp) =>
    eventually(async () => line.test(server.process.stderr()), {
      what: `it logs ${line}`,
      seen: server.process.transcript,
    });

  test("takes the log level over, names what needs a restart, and refuses a file with mistakes as a whole", async () => {
    await server.get("/healthz");
    expect(server.process.stderr()).not.toContain("GET /healthz");
    writeFileSync(configFile, "log: { level: debug }\nwatch: { most: 7 }\n");
    server.process.signal("SIGHUP");
    await logs(/"settings":\["watch\.most"\].*settings have changed that hold from the next start on/);
    await server.get("/healthz");
    await logs(/"level":"debug".*GET \/healthz/);
    writeFileSync(configFile, "log: { level: silent }\nwatch: { most: none }\n");
    server.process.signal("SIGHUP");
    await logs(/watch\.most .*the configuration cannot be used; nothing of it was taken over/);
  });
});

describe("a replica", () => {
  test("is drained and resumed while it serves, and logs more for a time", async () => {
    const ask = (method: string, request: object) =>
      server.ask(`millwright.v1.SystemService/${method}`, request, token);
    const replicas = [
      JSON.parse((await server.call("millwright.v1.SystemService/GetSystem", {}, token)).text).replicaId,
    ];
    const refused = await server.call("millwright.v1.SystemService/DrainReplicas", { replicas }, token);
    expect(refused).toMatchObject({ status: 400, body: { code: "failed_precondition" } });
    await ask("DrainReplicas", { replicas, force: true });
    const readyz = (part: string) =>
      eventually(async () => (await server.get("/readyz")).text.includes(part), {
        what: `/readyz says ${part}`,
        seen: server.process.transcript,
      });
    await readyz('"engine":"this replica was drained (millwright replica resume)"');
    expect((await server.get("/healthz")).status).toBe(200);
    await ask("ResumeReplicas", { replicas });
    await readyz('"engine":"ok"');
    await ask("SetLogLevel", { level: "silent", replicas });
    await eventually(
      async () => {
        const before = server.process.stderr().length;
        await ask("GetSystem", {});
        return server.process.stderr().length === before;
      },
      { what: "it is silent" },
    );
    await ask("SetLogLevel", {});
    await eventually(
      async () => {
        const before = server.process.stderr().length;
        await ask("GetSystem", {});
        return server.process.stderr().length > before;
      },
      { what: "it logs again" },
    );
  });
});

describe("configuration", () => {
  test("a typo in the environment ends the start with code 2, the key and the word that was meant", async () => {
    const refused = spawnServer(bench, { command: "serve", name: "typo", env: { MILLWRIGHT_ENGINE_CONCURENCY: "5" } });
    expect(await refused.exited).toEqual({ code: 2, signal: null });
    expect(refused.stderr()).toContain(
      'unknown variable "MILLWRIGHT_ENGINE_CONCURENCY"; did you mean "MILLWRIGHT_ENGINE_CONCURRENCY"?',
    );
  });

  test("so does one in the file, and `config check` says the same without starting anything", async () => {
    const file = join(bench.directory, "millwright.yaml");
    writeFileSync(file, "engine:\n  stop_grase: 3s\nlog:\n  level: loud\n");
    const check = bench.start({
      command: join(ROOT, "bin", "millwright"),
      args: ["config", "check", "--config", file],
    });
    expect(await check.exited).toEqual({ code: 2, signal: null });
    expect(check.stderr()).toMatch(/engine\.stop_grase.*did you mean "engine\.stop_grace"/);
    expect(check.stderr()).toMatch(/log\.level.*"loud".*must be/);
  });

  test("scripts that cannot be used end the start before there is a database, and `config check` says the same", async () => {
    const scripts = join(bench.directory, "scripts");
    mkdirSync(scripts);
    writeFileSync(join(scripts, "not a name.sh"), "true\n");
    const env = { MILLWRIGHT_SCRIPTS_DIRECTORY: scripts };
    const refused = spawnServer(bench, { command: "serve", name: "unstarted", env });
    const check = bench.start({ command: join(ROOT, "bin", "millwright"), args: ["config", "check"], env });
    for (const { exited, stderr } of [refused, check]) {
      expect(await exited).toEqual({ code: 2, signal: null });
      expect(stderr()).toContain(`scripts.directory: the scripts in ${scripts} cannot be used: "not a name.sh"`);
    }
    expect(existsSync(join(bench.directory, "unstarted"))).toBe(false);
  });
});

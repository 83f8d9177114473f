import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { expect, onTestFinished, test } from "vitest";
import { RunService } from "../../contract/baremetal/v1/baremetal_pb.js";
import { openSecretStore } from "../../src/store/access/secrets.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { letLeasesEnd } from "../support/processes/killed-servers.ts";
import { openProcessBench, type ProcessBench, ROOT } from "../support/processes/process-bench.ts";
import { adminToken, type ServerProcess, startServerProcess } from "../support/processes/server-process.ts";
import { startSimulatorProcess } from "../support/processes/simulator-process.ts";
import { putSiteOnRecord } from "../support/run-bench.ts";

const RUNS = 4;
/** How one server after the other ends; the last one goes on. */
const ENDS = ["SIGKILL", "SIGTERM", "SIGKILL"] as const;

interface Follower {
  readonly name: string;
  readonly runId: string;
  /** So far. */
  said(): string;
  /** Resolves when its stream has ended in good order. */
  readonly ended: Promise<void>;
}

/** The server's, or those of one that is started in its place. */
const portsOf = ({ httpUrl, grpcAddress }: ServerProcess) => ({
  MILLWRIGHT_HTTP_LISTEN: new URL(httpUrl).host,
  MILLWRIGHT_GRPC_LISTEN: grpcAddress,
});

/** Follows as a client of its own would: from where it was, for as long as the stream does not end by itself. */
function follow(name: string, transport: Transport, runId: string): Follower {
  const client = createClient(RunService, transport);
  const chunks: Buffer[] = [];
  const read = async () => {
    for (let after = 0n; ; ) {
      try {
        for await (const { seq, data } of client.streamRunLogs({ runId, after })) {
          after = seq;
          chunks.push(Buffer.from(data));
        }
        return;
      } catch (error) {
        // What a client makes of a connection that breaks off differs: with gRPC, Connect even calls it canceled.
        if (ConnectError.from(error).code === Code.InvalidArgument) throw error;
        await pause(100);
      }
    }
  };
  return { name, runId, said: () => Buffer.concat(chunks).toString("utf8"), ended: read() };
}

function followByCommand(bench: ProcessBench, { httpUrl }: ServerProcess, token: string, runId: string): Follower {
  const command = bench.start({
    command: join(ROOT, "bin", "millwright"),
    args: ["run", "logs", runId, "--follow", "--server", httpUrl],
    env: { HOME: bench.directory, MILLWRIGHT_TOKEN: token },
  });
  const ended = command.exited.then((exit) => expect(exit, command.transcript()).toEqual({ code: 0, signal: null }));
  return { name: "millwright run logs --follow", runId, said: command.stdout, ended };
}

function followers(bench: ProcessBench, server: ServerProcess, token: string, runId: string): Follower[] {
  const authorize: Interceptor = (next) => (call) => {
    call.header.set("authorization", `Bearer ${token}`);
    return next(call);
  };
  const interceptors = [authorize];
  const grpc = createGrpcTransport({ baseUrl: `http://${server.grpcAddress}`, interceptors });
  const http = createConnectTransport({ baseUrl: server.httpUrl, httpVersion: "1.1", interceptors });
  return [
    followByCommand(bench, server, token, runId),
    follow("gRPC", grpc, runId),
    follow("Connect over HTTP/1.1", http, runId),
  ];
}

const logOf = async ({ db }: TestDatabase, runId: string): Promise<string> => {
  const rows = await db.query<{ data: Buffer }>("select data from run_logs where run_id = $1 order by seq", [runId]);
  return Buffer.concat(rows.map(({ data }) => data)).toString("utf8");
};

test("who follows the logs of runs while servers are killed and stopped gets every line once", async () => {
  const bench = openProcessBench();
  const database = await createTestDatabase();
  onTestFinished(async () => {
    await bench.close();
    await database.drop();
  });
  const { db, url } = database;
  const keyFile = join(bench.directory, "secret-key");
  // Slow enough that runs are under way while three servers come and go.
  const simulator = await startSimulatorProcess(bench, { seed: 8, speed: 40 });
  const secrets = openSecretStore({ keyFile });
  const machines = await putSiteOnRecord({ db, stores: allStores, secrets, maxFindByIds: 100 }, simulator.call);
  const token = await adminToken(database);
  const serve = (name: string, ports: Readonly<Record<string, string>> = {}) =>
    startServerProcess(bench, {
      command: "serve",
      name,
      databaseUrl: url,
      env: { MILLWRIGHT_SECRET_KEY_FILE: keyFile, MILLWRIGHT_EXPLORER_INTERVAL: "1h", ...ports },
    });

  let server = await serve("first");
  const ports = portsOf(server);
  const all: Follower[] = [];
  for (const { machine_id: machineId } of machines.slice(0, RUNS)) {
    const asked = { requestId: "once", machineId, type: "REPAVE" };
    const { runId } = await server.ask<{ runId: string }>("baremetal.v1.RunService/StartRun", asked, token);
    all.push(...followers(bench, server, token, runId));
  }
  // A failure is told at the end, with what all the others got.
  for (const { ended } of all) ended.catch(() => {});
  await eventually(async () => all.every(({ said }) => said() !== ""), { what: "all have begun", within: 60_000 });
  const lines = async () =>
    (await db.query<{ count: number }>("select count(*)::int as count from run_logs"))[0]?.count ?? 0;
  const active = async () => (await db.query("select 1 from runs where state in ('PENDING', 'RUNNING')")).length;
  for (const [index, signal] of ENDS.entries()) {
    const before = await lines();
    await eventually(async () => (await lines()) > before, { what: "the logs grow", seen: server.process.transcript });
    expect(await active()).toBeGreaterThan(0);
    server.process.signal(signal);
    await server.process.exited;
    await letLeasesEnd(database);
    server = await serve(`next-${index}`, ports);
  }
  await simulator.call("PUT", "/speed", { speed: 400 });
  await eventually(async () => (await active()) === 0, {
    what: "all runs have ended",
    within: 120_000,
    seen: server.process.transcript,
  });
  for (const { name, runId, said, ended } of all) {
    await ended;
    expect(said(), name).toBe(await logOf(database, runId));
  }
}, 240_000);

import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterEach, describe, expect, test } from "vitest";
import { RackService } from "../../../contract/millwright/v1/rack_pb.js";
import { loadConfig } from "../../../src/config.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { type Server, startServer } from "../../../src/wiring/server.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { LISTED_ROWS } from "../../support/listed-rows.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const FLOOD = fileURLToPath(new URL("../../support/floods/flood.ts", import.meta.url));
const TOKENS = { flooder: "token-of-the-flooder", reader: "token-of-the-reader" };

let database: TestDatabase;
let directory: string;
let server: Server;
const attackers: ChildProcess[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  await LISTED_ROWS.plans(database.db, 1, 1_000);
  directory = mkdtempSync(join(tmpdir(), "millwright-floods-"));
  const tokens = Object.entries(TOKENS).map(([name, token]) => ({
    ...{ name, roles: ["viewer"] },
    sha256: createHash("sha256").update(token).digest("hex"),
  }));
  const limits = {
    connections_per_address: 200,
    headers_timeout: "1s",
    requests_per_caller: 100,
    requests_per_address: 50,
    calls_per_caller: 40,
    streams_per_caller: 50,
    streams_per_address: 20,
    failed_sign_ins: 20,
    unread_bytes: 8 * 1024 * 1024,
    // Else nothing on this host would be counted by its address. The attackers are at 127.0.0.2, the probe at 127.0.0.1.
    exempt_networks: ["127.0.0.1/32"],
  };
  const file = join(directory, "millwright.json");
  writeFileSync(file, JSON.stringify({ auth: { tokens }, limits }));
  const env = {
    MILLWRIGHT_DATABASE_URL: database.url,
    MILLWRIGHT_DATA_DIR: directory,
    MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
  };
  const { config } = loadConfig({ env, argv: ["--config", file], profile: "serve" });
  server = await startServer({ config, log: silentLog, version: "0.0.0", signal: new AbortController().signal });
});
afterEach(async () => {
  for (const attacker of attackers.splice(0)) {
    const ended = new Promise((resolve) => attacker.once("exit", resolve));
    attacker.kill("SIGKILL");
    await ended;
  }
});
afterAll(async () => {
  await server.stop();
  await database.drop();
  rmSync(directory, { recursive: true });
});

function flood(attack: string): void {
  const args = [FLOOD, attack, server.httpUrl, server.grpcAddress, TOKENS.flooder];
  attackers.push(spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] }));
}

const bearing = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

/** How often the limit was reached, as operators see it. */
async function timesReached(limit: string): Promise<number> {
  const text = await (await fetch(`${server.httpUrl}/metrics`, bearing(TOKENS.reader))).text();
  return Number(new RegExp(`^millwright_limit_reached_total\\{limit="${limit}"\\} (\\d+)`, "m").exec(text)?.[1] ?? 0);
}

/**
 * How long a probe waited for this server: the time that passed, but no more than the processor time that the server's thread used
 * meanwhile. On a computer that is busy with other things a probe waits longer, and this does not tell the server's own delay from theirs; what
 * the server itself does before it answers a probe costs its thread processor time. What others of its threads do meanwhile holds up nobody.
 */
async function probe(): Promise<number> {
  const begin = performance.now();
  const used = process.threadCpuUsage();
  const status = await new Promise((resolve, reject) => {
    http
      .get(`${server.httpUrl}/healthz`, { agent: probing }, (answer) => {
        answer.resume().once("end", () => resolve(answer.statusCode));
      })
      .once("error", reject);
  });
  const { user, system } = process.threadCpuUsage(used);
  const took = Math.min(performance.now() - begin, (user + system) / 1_000);
  expect(status).toBe(200);
  return took;
}

/** The connection is kept, as those of probes are: the client is in the same process, and what it does itself must not count. */
const probing = new http.Agent({ keepAlive: true, maxSockets: 1 });

const PROBES = 40;
const LONGEST_MS = 250;

describe("while callers flood the server", () => {
  test.each([
    "connections_per_address",
    "headers",
    "requests_per_caller",
    "requests_per_address",
    "calls_per_caller",
    "streams_per_caller",
    "streams_per_address",
    "failed_sign_ins",
    "unread_bytes",
  ])("up to %s, probes and others are answered", async (limit) => {
    const before = await timesReached(limit);
    for (let n = 0; n < 5; n += 1) await probe(); // what runs for the first time is compiled
    flood(limit);
    const waits: number[] = [];
    await eventually(
      async () => {
        waits.push(await probe());
        return waits.length >= PROBES && (await timesReached(limit)) > before;
      },
      { what: `${limit} is reached`, within: 60_000 },
    );
    expect(Math.max(...waits)).toBeLessThanOrEqual(LONGEST_MS);
    // Others are served, by RPC and by route.
    const list = await fetch(`${server.httpUrl}/millwright.v1.RackService/ListRacks`, {
      method: "POST",
      body: "{}",
      headers: { authorization: `Bearer ${TOKENS.reader}`, "content-type": "application/json" },
    });
    expect(list.status).toBe(200);
    expect((await fetch(`${server.httpUrl}/api/v1/nodes`, bearing(TOKENS.reader))).status).toBe(200);
  });
});

test("who asks too often is told when to ask again, over RPC, gRPC with its trailers, and REST", async () => {
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${server.httpUrl}${path}`, { ...init, headers: { ...bearing(TOKENS.flooder).headers, ...init.headers } });
  const rpc = () =>
    ask("/millwright.v1.RackService/ListRacks", {
      method: "POST",
      body: "{}",
      headers: { "content-type": "application/json" },
    });
  const refusedOf = (asking: () => Promise<Response>) =>
    eventually(
      async () => {
        const answers = await Promise.all(Array.from({ length: 60 }, asking));
        return answers.find(({ status }) => status === 429);
      },
      { what: "the caller is refused" },
    );
  const refused = await refusedOf(rpc);
  expect(refused.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
  expect(await refused.json()).toMatchObject({
    code: "resource_exhausted",
    message: expect.stringContaining("limit reached"),
  });
  const grpc = createClient(RackService, createGrpcTransport({ baseUrl: `http://${server.grpcAddress}` }));
  const overGrpc = await eventually(
    async () => {
      const calls = Array.from({ length: 60 }, () => grpc.listRacks({}, bearing(TOKENS.flooder)));
      const refusals = (await Promise.allSettled(calls)).flatMap((call) => (call.status === "rejected" ? [call] : []));
      return refusals
        .map(({ reason }) => ConnectError.from(reason))
        .find(({ code }) => code === Code.ResourceExhausted);
    },
    { what: "the caller is refused over gRPC" },
  );
  expect(overGrpc.metadata.get("retry-after")).toMatch(/^[1-9]\d*$/);
  expect(overGrpc.metadata.get("grpc-status")).toBe(String(Code.ResourceExhausted));
  const signIn = await refusedOf(() => ask("/auth/session", { method: "POST" }));
  expect(signIn.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
  expect(await signIn.text()).toContain("limit reached: more than 100 requests a second");
  const rest = await refusedOf(() => ask("/api/v1/nodes"));
  expect(rest.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
  expect(await rest.json()).toMatchObject({ detail: expect.stringContaining("limit reached") });
});

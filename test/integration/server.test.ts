import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import pg from "pg";
import { afterEach, beforeEach, expect, inject, test } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../contract/grpc/health/v1/health_pb.js";
import { TokenService } from "../../contract/millwright/v1/token_pb.js";
import { WatchService } from "../../contract/millwright/v1/watch_pb.js";
import { loadConfig } from "../../src/config.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { createToken } from "../../src/store/access/tokens.ts";
import { type Server, startServer } from "../../src/wiring/server.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { failureOf } from "./api/api-under-test.ts";

let database: TestDatabase;
let directory: string;
let server: Server;
beforeEach(async () => {
  database = await createTestDatabase();
  directory = mkdtempSync(join(tmpdir(), "millwright-server-"));
  const env = {
    MILLWRIGHT_DATABASE_URL: database.url,
    MILLWRIGHT_DATA_DIR: directory,
    MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_WATCH_MOST: "1",
  };
  const { config } = loadConfig({ env, argv: [], profile: "serve" });
  server = await startServer({ config, log: silentLog, version: "0.0.0", signal: new AbortController().signal });
});
afterEach(async () => {
  await server.stop();
  await database.drop();
  rmSync(directory, { recursive: true });
});

const transport = () => createGrpcTransport({ baseUrl: `http://${server.grpcAddress}` });
const tokenOf = (name: string) => createToken(database.db, { name, roles: ["admin"], createdBy: "test" });
const bearing = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

test("a token that is revoked loses its open watch at once, and the place is free for another", async () => {
  const [theirs, ours] = [await tokenOf("them"), await tokenOf("us")];
  const { watch } = createClient(WatchService, transport());
  const watching = watch({ fromNow: true }, bearing(theirs.token))[Symbol.asyncIterator]();
  await watching.next();
  const ended = failureOf(readToItsEnd(watching)); // other events may come first
  const refused = watch({ fromNow: true }, bearing(ours.token))[Symbol.asyncIterator]();
  expect((await failureOf(refused.next())).code).toBe(Code.ResourceExhausted);

  await createClient(TokenService, transport()).revokeToken({ id: theirs.id }, bearing(ours.token));
  expect((await ended).code).toBe(Code.Unauthenticated);
  await expect
    .poll(
      async () => {
        const stop = new AbortController();
        const mine = watch({ fromNow: true }, { ...bearing(ours.token), signal: stop.signal })[Symbol.asyncIterator]();
        const first = await mine.next().catch(() => undefined);
        stop.abort();
        return first?.value?.message.case;
      },
      { timeout: 20_000 },
    )
    .toBe("bookmark");
});

async function readToItsEnd(messages: AsyncIterator<unknown>): Promise<void> {
  while (!(await messages.next()).done);
}

/** Nobody is let in any more, and who is in is thrown out. */
async function takeAway({ name }: TestDatabase): Promise<void> {
  const admin = new pg.Client({ connectionString: inject("testServer").adminUrl });
  await admin.connect();
  await admin.query(`alter database ${name} allow_connections false`);
  await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [name]);
  await admin.end();
}

test("the health service says what /readyz says, as the database goes", async () => {
  const health = createClient(Health, transport());
  const status = async () => (await health.check({})).status;
  await expect.poll(status, { timeout: 20_000 }).toBe(Status.SERVING);
  await takeAway(database);
  await expect.poll(status, { timeout: 20_000 }).toBe(Status.NOT_SERVING);
  expect((await fetch(`${server.httpUrl}/readyz`)).status).toBe(503);
});

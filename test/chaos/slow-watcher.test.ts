import { setTimeout as pause } from "node:timers/promises";
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { WatchService } from "../../contract/millwright/v1/watch_pb.js";
import * as journal from "../../src/store/lifecycle/journal.ts";
import { lockThings } from "../../src/store/lifecycle/locks.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { openProcessBench, type ProcessBench } from "../support/processes/process-bench.ts";
import { residentBytes } from "../support/processes/process-table.ts";
import { adminToken, type ServerProcess, startServerProcess } from "../support/processes/server-process.ts";

const KIND = "power_shelf";
const EVENTS = 200_000;
const THINGS = 1_000;
const MOST_EXTRA_BYTES = 50 * 1_024 * 1_024;
const PAUSE_MS = process.env.CHAOS_LONG === "1" ? 60_000 : 15_000;

let bench: ProcessBench;
let database: TestDatabase;
let server: ServerProcess;
let token: string;
let stop: AbortController;

beforeEach(async () => {
  stop = new AbortController();
  bench = openProcessBench();
  database = await createTestDatabase();
  token = await adminToken(database);
  server = await startServerProcess(bench, { command: "serve", databaseUrl: database.url });
});
afterEach(async () => {
  stop.abort();
  await bench.close();
  await database.drop();
});

/** The events of some things from one version on, many things to a transaction, as the committer writes them. */
async function write(prefix: string, versions: number, { things = THINGS, batch = 250 } = {}): Promise<void> {
  const ids = Array.from({ length: things }, (_, index) => `${prefix}-${index}`);
  // Two writers, each with its own half of the things in every transaction: transactions overlap, as they do in life.
  const halves = [ids.filter((_, index) => index % 2 === 0), ids.filter((_, index) => index % 2 === 1)];
  await Promise.all(
    halves.map(async (half) => {
      for (let version = 1; version <= versions; version += 1) {
        for (let start = 0; start < half.length; start += batch)
          await append(half.slice(start, start + batch), version);
      }
    }),
  );
}

async function append(ids: readonly string[], version: number): Promise<void> {
  const keys = ids.map((id) => ({ kind: KIND, id }));
  await database.db.transaction(async (tx) => {
    await lockThings(tx, keys);
    await journal.append(
      tx,
      keys.map((key) => ({
        ...key,
        version,
        type: "transition",
        from: "ready",
        to: "maintenance",
        owner: "controller",
        actor: "controller",
        reason: "maintenanceRequested",
        data: { trigger: "maintenanceRequested", state: { operation: "power_off" }, state_version: version },
      })),
    );
    await journal.announce(tx);
  });
}

const authorize: Interceptor = (next) => (call) => {
  call.header.set("authorization", `Bearer ${token}`);
  return next(call);
};

function watch() {
  const transport = createGrpcTransport({ baseUrl: `http://${server.grpcAddress}`, interceptors: [authorize] });
  const stream = createClient(WatchService, transport).watch({ fromNow: true }, { signal: stop.signal });
  return stream[Symbol.asyncIterator]();
}

type Watcher = ReturnType<typeof watch>;

/** Reads so many events, and checks that each thing's come in the order of its versions, without gap or repeat. */
async function readInOrder(watcher: Watcher, count: number): Promise<void> {
  const versions = new Map<string, number>();
  for (let seen = 0; seen < count; ) {
    const { value, done } = await watcher.next();
    if (done) throw new Error(`the stream ended after ${seen} of ${count} events\n${server.process.transcript()}`);
    if (value.message.case !== "event") continue;
    const { id, version } = value.message.value;
    const expected = (versions.get(id) ?? 0) + 1;
    if (Number(version) !== expected) throw new Error(`${id}: got version ${version}, expected ${expected}`);
    versions.set(id, expected);
    seen += 1;
  }
}

test("a watcher that stops reading while 200,000 events are written gets each once, in order, at little memory", async () => {
  const [stalled, brisk] = [watch(), watch()];
  for (const watcher of [stalled, brisk]) expect((await watcher.next()).value?.message.case).toBe("bookmark");
  // Warm up: what the server allocates once for serving events at this pace is not the stalled reader's cost.
  const warm = 20_000;
  await Promise.all([write("warm", warm / THINGS), readInOrder(stalled, warm), readInOrder(brisk, warm)]);
  const before = residentBytes(server.process.pid);

  let most = before;
  const measuring = new AbortController();
  const measured = (async () => {
    while (!measuring.signal.aborted) {
      most = Math.max(most, residentBytes(server.process.pid));
      await pause(100, undefined, { signal: measuring.signal }).catch(() => undefined);
    }
  })();
  const [keptUp] = await Promise.all([
    readInOrder(brisk, EVENTS).then(() => true),
    write("many", EVENTS / THINGS),
    pause(PAUSE_MS), // the reader stands still at least so long, however fast the writing goes
  ]);
  expect(keptUp).toBe(true);
  await readInOrder(stalled, EVENTS);
  measuring.abort();
  await measured;
  const extra = most - before;
  expect(extra, `${Math.round(extra / 1024 ** 2)} MB on top of ${Math.round(before / 1024 ** 2)} MB`).toBeLessThan(
    MOST_EXTRA_BYTES,
  );
}, 240_000);

// @module-tag race
import { expect, test } from "vitest";
import { type LeaseTimes, STOCK_LEASE } from "../../../src/engine/lease/lease.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { milliseconds, seconds } from "../../../src/kernel/time/duration.ts";
import { openDatabase } from "../../../src/store/postgres/database.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { cancelRigRun } from "../../support/processes/rig-victim.ts";
import { addRig, createRigTables } from "../../support/rigs/rig.ts";
import { type RigEngine, rigStores, startRigEngine, startRigRun } from "../../support/rigs/rig-engine.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { openDatabaseGate } from "../../support/uploads/database-gate.ts";
import { UploadServer } from "../../support/uploads/upload-server.ts";

/** Device calls that are streams, on a real database, to an HTTP server that takes them slowly. Leases are shortened. */
const LEASE: LeaseTimes = { own: milliseconds(1_500), longestCall: seconds(1) };
const MEGABYTE = 1_000_000;
const RATE = 4 * MEGABYTE;

let database: TestDatabase;
let server: UploadServer;
beforeAll(async () => {
  database = await createTestDatabase();
  await createRigTables(database.db);
  server = await UploadServer.start({ bytesPerSecond: RATE });
});
afterAll(async () => {
  await server.close();
  await database.drop();
});

let rigs = 0;
async function startUpload(bytes: number, options: { readonly timeoutSeconds?: number } = {}): Promise<string> {
  rigs += 1;
  await addRig(database.db, rigStores, `rig-${rigs}`, 1);
  return startRigRun(database.db, `rig-${rigs}`, ["upload_image"], {
    payload: { url: server.url, bytes },
    ...options,
  });
}

const startReplica = (instance: string, options: { readonly inFlight?: number } = {}): Promise<RigEngine> =>
  startRigEngine(database.db, { instance, lease: LEASE, ...options });

interface RunRow {
  readonly state: string;
  readonly error: string;
  readonly reason: string | null;
  readonly message: string;
}
async function runOf(id: string): Promise<RunRow> {
  const [row] = await database.db.query<RunRow>(
    `select state, coalesce(facts -> 'error' ->> 'message', '') as error, outcome ->> 'reason' as reason,
            coalesce(facts -> 'steps' -> 0 ->> 'message', '') as message from runs where id = $1`,
    [id],
  );
  if (!row) throw new Error(`there is no ${id}`);
  return row;
}
const until = (id: string, what: string, is: (row: RunRow) => boolean, within = 60_000): Promise<RunRow> =>
  eventually(
    async () => {
      const row = await runOf(id);
      return is(row) ? row : undefined;
    },
    { what, within, seen: async () => JSON.stringify([await runOf(id), server.uploadsOf(id)]) },
  );
const ended = (id: string) => until(id, `${id} has ended`, ({ state }) => !["PENDING", "RUNNING"].includes(state));
const untilSent = (id: string, bytes: number) =>
  eventually(async () => (server.uploadsOf(id).at(-1)?.bytes ?? 0) >= bytes, { what: `${bytes} bytes of ${id} came` });

/** How much longer the lease of the run lasts in the database, in milliseconds. */
async function leaseLeft(id: string): Promise<number> {
  const [row] = await database.db.query<{ left: number }>(
    "select extract(epoch from lease_until - now())::float8 * 1000 as left from work where kind = 'run' and id = $1",
    [id],
  );
  return row?.left ?? 0;
}

test("an upload that lasts several leases goes through in one piece, and shows how far it is", async () => {
  const replicas = [await startReplica("one"), await startReplica("two")];
  try {
    const id = await startUpload(40 * MEGABYTE);
    await untilSent(id, 4 * MEGABYTE);
    const lasts = await leaseLeft(id);
    // Renewed at least every half second; what a plain lease lasts is 2.5 s.
    expect(lasts).toBeGreaterThan(4_500);
    const { reason } = await until(id, "its message shows progress", ({ message }) => /^sent /.test(message));
    expect(reason).toMatch(/^upload_image: sent \d+\.\d [kM]B of 40\.0 MB \(\d+ %\)$/);
    expect(await ended(id)).toMatchObject({ state: "SUCCEEDED", message: "the image is there" });
    expect(server.uploadsOf(id)).toMatchObject([{ end: "whole" }]);
    const [first] = server.uploadsOf(id);
    expect((first?.lastByteAt ?? 0) - (first?.startedAt ?? 0)).toBeGreaterThan(3 * LEASE.own);
    const log = await database.db.query<{ text: string }>(
      "select convert_from(data, 'UTF8') as text from run_logs where run_id = $1 order by seq",
      [id],
    );
    expect(log.map(({ text }) => text).join("")).toMatch(
      /begins an upload of 40000000 bytes\n.*has sent everything\n/s,
    );
  } finally {
    for (const replica of replicas) await replica.stop();
  }
});

test("a cancel ends the upload at the next chunk, and what is undone comes after it", async () => {
  const replica = await startReplica("one");
  try {
    const id = await startUpload(400 * MEGABYTE);
    await untilSent(id, 4 * MEGABYTE);
    await cancelRigRun(database.db, id);
    expect(await ended(id)).toMatchObject({ state: "CANCELED" });
    const [first, ...others] = server.uploadsOf(id);
    expect(others).toEqual([]);
    await eventually(async () => first?.end === "cut", { what: "the device sees that it was cut" });
    expect(server.touchesOf(id).filter(({ method }) => method !== "GET")).toMatchObject([
      { method: "PUT" },
      { method: "DELETE" },
    ]);
  } finally {
    await replica.stop();
  }
});

test("a step whose time is over ends its upload, and says how far it came", async () => {
  const replica = await startReplica("one");
  try {
    const id = await startUpload(400 * MEGABYTE, { timeoutSeconds: 4 });
    const { state, error } = await ended(id);
    expect(state).toBe("FAILED");
    expect(error).toMatch(/^upload_image: not done within 4s: sent \d+\.\d MB of 400\.0 MB \(\d %\)$/);
    expect(server.uploadsOf(id)).toHaveLength(1);
    await eventually(async () => server.uploadsOf(id)[0]?.end === "cut", { what: "the device sees that it was cut" });
  } finally {
    await replica.stop();
  }
});

test("a change of the run by somebody else does not end the upload", async () => {
  const replica = await startReplica("one");
  try {
    const id = await startUpload(24 * MEGABYTE);
    await untilSent(id, 4 * MEGABYTE);
    await database.db.execute("update runs set version = version + 1, basis = basis + 1 where id = $1", [id]);
    expect(await ended(id)).toMatchObject({ state: "SUCCEEDED" });
    expect(server.uploadsOf(id)).toMatchObject([{ end: "whole" }]);
  } finally {
    await replica.stop();
  }
});

test("an upload goes on in one piece while the database is away for less than the lease", async () => {
  const gate = await openDatabaseGate(database);
  const away = Promise.withResolvers<void>();
  const debug = (_: object, message: string) => {
    if (message.includes("the stream goes on")) away.resolve();
  };
  const db = openDatabase(gate.config, { log: silentLog, applicationName: "behind-gate" });
  const log = { ...silentLog, debug };
  const replica = await startRigEngine(db, { instance: "one", lease: STOCK_LEASE, log });
  try {
    const id = await startUpload(40 * MEGABYTE);
    await untilSent(id, 4 * MEGABYTE);
    await gate.close();
    await away.promise;
    const before = server.uploadsOf(id)[0]?.bytes ?? 0;
    await untilSent(id, before + MEGABYTE);
    await gate.open();
    expect(await ended(id)).toMatchObject({ state: "SUCCEEDED", message: "the image is there" });
    expect(server.uploadsOf(id)).toMatchObject([{ end: "whole" }]);
  } finally {
    await gate.open(); // the replica hands its leases over as it stops
    await replica.stop();
    await db.close();
    await gate.remove();
  }
});

test("an upload takes nobody's place, and a replica has no more of them than places", async () => {
  const replica = await startReplica("one", { inFlight: 1 });
  try {
    const first = await startUpload(24 * MEGABYTE);
    await untilSent(first, MEGABYTE);
    const second = await startUpload(MEGABYTE);
    rigs += 1;
    await addRig(database.db, rigStores, `rig-${rigs}`, 1);
    const poking = await startRigRun(database.db, `rig-${rigs}`, ["poke_all"]);
    await until(
      second,
      "the second upload waits",
      ({ reason }) => reason?.includes("waits until another stream") === true,
    );
    expect(await ended(poking)).toMatchObject({ state: "SUCCEEDED" });
    expect(server.uploadsOf(first)).toMatchObject([{ bytes: expect.any(Number) }]);
    expect(server.uploadsOf(first)[0]?.end).toBeUndefined();
    expect(await ended(first)).toMatchObject({ state: "SUCCEEDED" });
    expect(await ended(second)).toMatchObject({ state: "SUCCEEDED" });
  } finally {
    await replica.stop();
  }
});

// @module-tag race
import { describe, type TestContext, test, vi } from "vitest";
import { LEASE, type LeaseTimes } from "../../src/engine/lease/lease.ts";
import { milliseconds, seconds } from "../../src/kernel/time/duration.ts";
import { createTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openProcessBench, type StartedProcess } from "../support/processes/process-bench.ts";
import { isPaused } from "../support/processes/process-table.ts";
import { startProgram } from "../support/processes/programs.ts";
import type { UploadReplicaOrder } from "../support/processes/upload-replica.ts";
import { addRig, createRigTables } from "../support/rigs/rig.ts";
import { rigStores, startRigRun } from "../support/rigs/rig-engine.ts";
import { type Upload, UploadServer } from "../support/uploads/upload-server.ts";
import { CHUNK_BYTES, uploadImage } from "../support/uploads/upload-step.ts";

/**
 * A replica uploads an image to a device, and is stopped, paused or killed in the middle of it. Another one takes over: not before
 * the first can have nothing on its way to the device any more. The first one sends nothing more, also when it goes on.
 */
const SHORT: LeaseTimes = { own: milliseconds(1_500), longestCall: seconds(1) };
const MEGABYTE = 1_000_000;
const RATE = 2 * MEGABYTE;
const SIZE = 16 * MEGABYTE;
const LONGEST_CHUNK = uploadImage.streams?.longestChunk ?? 0;

vi.setConfig({ maxConcurrency: 4 });

interface Site {
  readonly server: UploadServer;
  startReplica(instance: string, failPoint?: string): Promise<StartedProcess>;
  startUpload(kind: string, bytes: number): Promise<string>;
  runOf(id: string): Promise<{ readonly state: string; readonly message: string; readonly events: number }>;
  untilSent(id: string, bytes: number): Promise<Upload>;
  /** Fails unless it comes to SUCCEEDED. */
  untilDone(id: string, within?: number): Promise<void>;
}

async function openSite(
  { expect, onTestFinished }: TestContext,
  { lease, bytesPerSecond = RATE }: { readonly lease?: LeaseTimes; readonly bytesPerSecond?: number },
): Promise<Site> {
  const database = await createTestDatabase();
  const { db } = database;
  const bench = openProcessBench();
  const server = await UploadServer.start({ bytesPerSecond });
  onTestFinished(async () => {
    await bench.close();
    await server.close();
    await database.drop();
  });
  await createRigTables(db);
  await addRig(db, rigStores, "rig", 1);
  const runOf: Site["runOf"] = async (id) => {
    const [row] = await db.query<{ state: string; message: string; events: number }>(
      `select state, coalesce(facts -> 'steps' -> 0 ->> 'message', '') as message,
              (select count(*)::int from journal where kind = 'run' and id = $1) as events from runs where id = $1`,
      [id],
    );
    if (!row) throw new Error(`there is no ${id}`);
    return row;
  };
  const seen = async (id: string) => JSON.stringify([await runOf(id), server.uploadsOf(id)]);
  return {
    server,
    runOf,
    async startReplica(instance, failPoint) {
      const order: UploadReplicaOrder = { url: database.url, instance, ...(lease && { lease }) };
      const env = failPoint === undefined ? {} : { MILLWRIGHT_FAILPOINT: failPoint };
      const replica = await startProgram(bench, { program: "upload-replica.ts", args: [JSON.stringify(order)], env });
      await replica.said(/ready/);
      return replica;
    },
    startUpload: (kind, bytes) => startRigRun(db, "rig", [kind], { payload: { url: server.url, bytes } }),
    untilSent: (id, bytes) =>
      eventually(async () => server.uploadsOf(id).find((one) => one.bytes >= bytes), {
        what: `${bytes} bytes came`,
        seen: () => seen(id),
      }),
    async untilDone(id, within = 120_000) {
      const isOver = async () => !["PENDING", "RUNNING"].includes((await runOf(id)).state);
      await eventually(isOver, { what: `${id} has ended`, within, seen: () => seen(id) });
      expect(await runOf(id), await seen(id)).toMatchObject({ state: "SUCCEEDED" });
    },
  };
}

/** The first was cut, the second is whole and began when the first was over. Returns when the other first touched the device. */
function expectHandedOver(
  { expect }: TestContext,
  { server }: Site,
  id: string,
  first: Upload | undefined = server.uploadsOf(id)[0],
): number {
  const [, second, ...others] = server.uploadsOf(id);
  expect(others).toEqual([]);
  expect(first).toMatchObject({ from: "first" });
  expect(first?.bytes).toBeLessThan(SIZE);
  expect(second).toMatchObject({ from: "other", end: "whole" });
  const touch = server.touchesOf(id).find(({ from }) => from === "other");
  expect(touch?.at).toBeGreaterThan(first?.lastByteAt ?? Number.POSITIVE_INFINITY);
  return touch?.at ?? 0;
}

describe("a replica that uploads an image and", { concurrent: true, timeout: 180_000 }, () => {
  test("is stopped cuts the upload, and another one sends it again", async (context) => {
    const site = await openSite(context, { lease: SHORT });
    const first = await site.startReplica("first");
    const id = await site.startUpload("upload_image", SIZE);
    await site.untilSent(id, SIZE / 4);
    first.signal("SIGTERM");
    context.expect(await first.exited, first.transcript()).toEqual({ code: 0, signal: null });
    // A slow device still takes what its own buffers hold of a sender that is gone.
    await eventually(async () => site.server.uploadsOf(id)[0]?.end === "cut", { what: "the device sees the cut" });
    await site.startReplica("other");
    await site.untilDone(id);
    expectHandedOver(context, site, id);
  });

  test("is paused for longer than its lease sends nothing more when it goes on", async (context) => {
    const { expect } = context;
    const site = await openSite(context, { lease: SHORT });
    const first = await site.startReplica("first");
    const id = await site.startUpload("upload_image", SIZE);
    const cut = await site.untilSent(id, SIZE / 4);
    await site.startReplica("other");
    first.signal("SIGSTOP");
    await eventually(async () => isPaused(first.pid), { what: "it is paused" });
    const pausedAt = performance.now();
    await eventually(async () => site.server.uploadsOf(id).length > 1, { what: "the other one sends", within: 90_000 });
    const before = { ...cut };
    first.signal("SIGCONT");
    await eventually(async () => cut.end === "cut", { what: "the first one gives its connection up" });
    // The network may have taken only a part of the last chunk before the pause. No other one leaves.
    expect(cut.bytes - before.bytes).toBeLessThan(CHUNK_BYTES);
    await site.untilDone(id);
    expect(expectHandedOver(context, site, id, before) - pausedAt).toBeGreaterThan(LONGEST_CHUNK);
    first.signal("SIGTERM");
    expect(await first.exited, first.transcript()).toEqual({ code: 0, signal: null });
  });

  test.for([1, 5])("is killed after chunk %i leaves the rest to another one", async (chunk, context) => {
    const { expect } = context;
    const site = await openSite(context, { lease: SHORT });
    const first = await site.startReplica("first", `stream:chunk-sent@${chunk}`);
    const id = await site.startUpload("upload_image", SIZE);
    expect(await first.exited, first.transcript()).toEqual({ code: null, signal: "SIGKILL" });
    const killedAt = performance.now();
    await site.startReplica("other");
    await site.untilDone(id);
    expect(expectHandedOver(context, site, id) - killedAt).toBeGreaterThan(LONGEST_CHUNK);
  });
});

/** Ten minutes, with the lease of every installation: fifty times as long as the lease, and twice as long as a pass may last. */
test.runIf(process.env.CHAOS_LONG === "1")(
  "an upload that takes ten minutes goes through in one piece",
  { timeout: 900_000 },
  async (context) => {
    const { expect } = context;
    const site = await openSite(context, {});
    await site.startReplica("first");
    await site.startReplica("other");
    const id = await site.startUpload("upload_firmware", 600 * RATE);
    await site.untilDone(id, 800_000);
    const [upload, ...others] = site.server.uploadsOf(id);
    expect(others).toEqual([]);
    expect(upload).toMatchObject({ end: "whole" });
    expect((upload?.lastByteAt ?? 0) - (upload?.startedAt ?? 0)).toBeGreaterThan(45 * LEASE);
    // About one event in ten seconds.
    expect((await site.runOf(id)).events).toBeLessThan(100);
  },
);

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import type { ImageToSend } from "../../../src/capabilities/rack/firmware.ts";
import type { StreamCall } from "../../../src/capabilities/stream.ts";
import { StepFailure } from "../../../src/kernel/errors.ts";
import { minutes, seconds } from "../../../src/kernel/time/duration.ts";
import {
  createRedfishMachineProvider,
  type RedfishMachineProvider,
} from "../../../src/providers/redfish/machine/redfish-machine-provider.ts";
import { type BmcGateway, createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { anImage, type FrontTraits, UpdateFront } from "../../support/firmware/update-front.ts";

const image = anImage("bmc", "2.0");
const BMC = "/redfish/v1/UpdateService/FirmwareInventory/BMC_0";

let front: UpdateFront;
let files: Server;
let gateway: BmcGateway;
let provider: RedfishMachineProvider;
/** How far the clock of the gateway is ahead. */
let ahead = 0;

beforeEach(async () => {
  ahead = 0;
  const clock = { now: () => new Date(Date.now() + ahead), monotonic: () => performance.now() + ahead };
  gateway = createBmcGateway({ clock });
  provider = createRedfishMachineProvider({ gateway, clock });
  files = createServer((_request, response) => response.end(image));
  await new Promise<void>((resolve) => files.listen(0, "127.0.0.1", resolve));
});

afterEach(async () => {
  await provider.close();
  gateway.close();
  await front.close();
  await new Promise((resolve) => files.close(resolve));
});

const start = async (traits: FrontTraits = {}) => {
  front = await UpdateFront.start(traits);
};

const uri = () => `http://127.0.0.1:${(files.address() as AddressInfo).port}/token-4711`;

/** A stream whose lease ends after so many chunks. */
function aStream(mostChunks = Number.POSITIVE_INFINITY): StreamCall & { readonly sent: number[] } {
  const sent: number[] = [];
  let chunks = 0;
  return {
    ...aCall(),
    sent,
    async sendChunk(send) {
      chunks += 1;
      if (chunks > mostChunks) throw new StepFailure("stopped", "the lease is gone");
      return send(new AbortController().signal);
    },
    report: ({ bytes }) => void sent.push(bytes),
  };
}

const toSend = (targets: readonly string[] = []): ImageToSend => ({
  name: "bmc 2.0.fwpkg",
  bytes: image.length,
  targets,
  async *chunks() {
    yield image;
  },
});

describe("an update of firmware over Redfish", () => {
  test("by an address that the BMC fetches", async () => {
    await start();
    const { firmware, tasks } = provider.can;
    const { task } = await firmware.startUpdate(front.target, { uri: uri(), targets: [BMC] }, aCall());
    expect(front.flashes).toMatchObject([{ way: "simple", targets: [BMC], version: "2.0", bytes: image.length }]);
    expect(await tasks.listTasks(front.target, aCall())).toEqual([task]);
    front.progress(40, "writing");
    const read = () => tasks.readTask(front.target, task ?? "", aCall());
    expect(await read()).toMatchObject({ state: "running", percent: 40, message: "writing", targets: [BMC] });
    front.finish();
    expect(await read()).toMatchObject({ state: "completed" });
    expect(await firmware.readInstalled(front.target, aCall(), [BMC])).toEqual([
      { component: "bmc", id: "BMC_0", path: BMC, version: "2.0", updateable: true },
    ]);
  });

  test.each([
    ["multipart", ["multipart", "push"]],
    ["push", ["push"]],
  ] as const)("by %s, where the BMC has the ways %j: byte by byte the image, once", async (way, ways) => {
    await start({ ways });
    const stream = aStream();
    const { task } = await provider.can.firmware.upload(front.target, toSend([BMC]), stream);
    expect(task).toMatch(/Tasks\/1$/);
    expect(front.flashes).toMatchObject([{ way, bytes: image.length, version: "2.0" }]);
    expect(front.flashes[0]?.targets).toEqual(way === "multipart" ? [BMC] : []);
    const pieces = stream.sent.map((bytes, at) => bytes - (stream.sent[at - 1] ?? 0));
    expect(Math.max(...pieces)).toBeLessThanOrEqual(64 * 1_024);
    if (way === "push") expect(front.requests).toContain("PATCH /redfish/v1/UpdateService");
  });

  test("an upload that loses its lease is cut, and the BMC begins nothing", async () => {
    await start({ ways: ["multipart"] });
    await expect(provider.can.firmware.upload(front.target, toSend(), aStream(2))).rejects.toThrow("the lease is gone");
    expect(front.flashes).toEqual([]);
    await provider.can.firmware.upload(front.target, toSend(), aStream());
    expect(front.flashes).toHaveLength(1);
  });

  test("a BMC that refuses before it has read all ends the upload with its answer", async () => {
    await start({ ways: ["push"], refusesEarly: 413 });
    const uploaded = provider.can.firmware.upload(front.target, toSend(), aStream());
    await expect(uploaded).rejects.toMatchObject({ code: "refused_by_device", status: 413 });
  });

  test("a BMC that begins and does not answer leaves open whether it did", async () => {
    await start({ ways: ["push"], losesAnswers: true });
    const uploaded = provider.can.firmware.upload(front.target, toSend(), aStream());
    await expect(uploaded).rejects.toMatchObject({ family: "silent" });
  });

  test("a BMC that is busy says so", async () => {
    await start();
    front.busy = 1;
    const started = provider.can.firmware.startUpdate(front.target, { uri: uri(), targets: [] }, aCall());
    await expect(started).rejects.toMatchObject({ family: "busy", status: 503 });
    expect(front.flashes).toEqual([]);
  });

  test("a refusal does not tell the address of the image", async () => {
    await start({ refusesHttp: true });
    const started = provider.can.firmware.startUpdate(front.target, { uri: uri(), targets: [] }, aCall());
    const error = await started.catch((failure: unknown) => failure);
    expect(error).toMatchObject({ family: "declines" });
    expect((error as Error).message).toContain("TransferProtocol HTTP is not supported");
    expect((error as Error).message).not.toContain("token-4711");
  });

  test("neither does a task that failed", async () => {
    await start();
    const { task } = await provider.can.firmware.startUpdate(front.target, { uri: uri(), targets: [] }, aCall());
    front.finish("fails");
    const failed = await provider.can.tasks.readTask(front.target, task ?? "", aCall());
    expect(failed).toMatchObject({ state: "failed", message: "the image at (address) is not for this device" });
  });

  test.each([
    ["unlisted", "running"],
    ["gone_when_done", "gone"],
  ] as const)("of a BMC whose tasks are %s nothing follows from the list", async (tasks, state) => {
    await start({ tasks, tellsNoPercent: true, contentType: "text/html" });
    const { can } = provider;
    const { task } = await can.firmware.startUpdate(front.target, { uri: uri(), targets: [] }, aCall());
    if (tasks === "gone_when_done") front.finish();
    expect(await can.tasks.listTasks(front.target, aCall())).toEqual(tasks === "unlisted" ? null : []);
    expect(await can.tasks.readTask(front.target, task ?? "", aCall())).toMatchObject({ state, percent: null });
  });

  test("a BMC without a task has begun all the same", async () => {
    await start({ tasks: "none" });
    const started = provider.can.firmware.startUpdate(front.target, { uri: uri(), targets: [] }, aCall());
    expect(await started).toEqual({ task: null });
    expect(front.flashes).toHaveLength(1);
  });
});

describe("a BMC that restarts", () => {
  const read = () => provider.can.firmware.readInstalled(front.target, aCall(), [BMC]);

  const expectRestart = (within = minutes(10)) =>
    provider.can.manager.expectRestart(front.target, new Date(Date.now() + ahead + within));

  test("may reject us while it starts, and works at once afterwards", async () => {
    await start();
    await read();
    expectRestart();
    front.comeBack({ rejects: true });
    for (const wait of [seconds(16), minutes(2) + seconds(1)]) {
      await expect(read()).rejects.toMatchObject({ code: "credentials_rejected" });
      ahead += wait;
    }
    front.comeBack();
    expect(await read()).toHaveLength(1);
  });

  test("and goes on rejecting us is tried three times, however long its restart is expected: the account is not locked by us", async () => {
    await start();
    await read();
    front.comeBack({ rejects: true });
    const before = front.requests.length;
    // As a flash is awaited: each look says again that the BMC may restart.
    for (let look = 0; look < 75; look += 1) {
      expectRestart(minutes(15));
      await expect(read()).rejects.toMatchObject({ family: "keeps_out" });
      ahead += seconds(10);
    }
    expect(front.requests.length - before).toBe(3);
    await expect(read()).rejects.toMatchObject({ code: "sign_in_stopped" });
    ahead += minutes(15);
    front.comeBack();
    expect(await read()).toHaveLength(1);
    // It was let in again: the next restart is excused as the first was.
    expectRestart();
    front.comeBack({ rejects: true });
    await expect(read()).rejects.toMatchObject({ code: "credentials_rejected" });
  });

  test("is no excuse any more once the time is over", async () => {
    await start();
    await read();
    provider.can.manager.expectRestart(front.target, new Date(Date.now() + seconds(5)));
    ahead += seconds(20);
    front.comeBack({ rejects: true });
    for (let tries = 0; tries < 3; tries += 1) await read().catch(() => undefined);
    front.comeBack();
    await expect(read()).rejects.toMatchObject({ code: "sign_in_stopped" });
  });

  test("tells who it is, and when it started, before and after", async () => {
    await start();
    const { manager } = provider.can;
    const before = await manager.readRoot(front.target, aCall());
    const started = await manager.readStart(front.target, aCall());
    await manager.resetManager(front.target, aCall());
    front.goAway();
    front.comeBack({ newCertificate: true });
    const after = await manager.readRoot(front.target, aCall());
    expect(after.uuid).toBe(before.uuid);
    expect(after.certificateFingerprint).not.toBe(before.certificateFingerprint);
    expect(await manager.readStart(front.target, aCall())).not.toBe(started);
  });
});

import { describe, expect, test } from "vitest";
import { create } from "../../kernel/effects.ts";
import { hours, minutes } from "../../kernel/time/duration.ts";
import type { Machine } from "../machine/machine.ts";
import type { RackFirmware } from "../rack-firmware/rack-firmware.ts";
import { type HostReprovisionContext, hostReprovisionHandlers, type OwnUpgrade } from "./handlers.ts";
import type { HostReprovision } from "./host-reprovision.ts";

const NOW = new Date("2026-01-02T03:04:05.000Z");
const ago = (ms: number) => new Date(NOW.getTime() - ms).toISOString();
const machine = { id: "m1", state: { name: "READY" }, spec: { rack: "rack-1" } } as unknown as Machine;
const firmware: RackFirmware = {
  id: "fw-1",
  hardwareType: "gb200",
  available: true,
  isDefault: true,
  components: [
    {
      device: "compute",
      component: "bmc",
      class: "prod",
      version: "2",
      digest: "sha256:0",
      bytes: 1,
      targets: [],
      activation: "none",
      order: 0,
    },
  ],
};
const request = { id: "q1", initiator: "ann", requested_at: NOW.toISOString(), reset: false };
const host = (name: string, change: Partial<HostReprovision> = {}): HostReprovision => ({
  id: "m1",
  version: 1,
  basis: 1,
  state: { name },
  stateSince: NOW,
  stateVersion: 7,
  outcome: null,
  machine,
  assigned: "no",
  firmware,
  firmwareClass: "prod",
  reprovisionRequest: null,
  facts: { retryCount: 0, reportedAt: null, exhausted: false },
  ...change,
});
const started: OwnUpgrade[] = [];
const context: HostReprovisionContext = {
  call: { subject: "test", signal: new AbortController().signal, mayTouchDevice: (wanted) => wanted },
  clock: { now: () => NOW, monotonic: () => 0 },
  retryInterval: hours(1),
  maxRetries: 5,
  startUpgrade: (upgrade) => {
    started.push(upgrade);
    return create({ kind: "run" }, "run-1", {});
  },
};
const handle = (thing: HostReprovision) =>
  hostReprovisionHandlers[thing.state.name as keyof typeof hostReprovisionHandlers](thing, context);

describe("a request", () => {
  test.each(["ready", "failed_firmware_upgrade"])(
    "in %s begins the upgrade at once, with no retry, the alert and the run",
    async (name) => {
      const facts = { retryCount: 4, reportedAt: ago(minutes(1)), exhausted: true };
      expect(await handle(host(name, { reprovisionRequest: request, facts }))).toMatchObject({
        event: "own_upgrade_begun",
        data: { retry: 0, run: "run-1", request },
        effects: [
          { type: "create", id: "run-1" },
          { type: "alert", source: "host-fw-update", open: { message: expect.stringContaining("fw-1") } },
        ],
      });
      expect(started.at(-1)).toMatchObject({ firmwareId: "fw-1", initiator: "ann", unique: "q1" });
    },
  );

  test.each([
    ["yes", "is in use"],
    ["unknown", "was not checked yet"],
  ] as const)("waits while the machine's use is %s", async (assigned, why) => {
    const outcome = await handle(host("ready", { reprovisionRequest: request, assigned }));
    expect(outcome).toMatchObject({ type: "waiting", reason: expect.stringContaining(why) });
  });

  test.each<[Partial<HostReprovision>, string]>([
    [{ firmware: null }, "rack rack-1 has no default firmware"],
    [{ firmware: { ...firmware, available: false } }, "fw-1 is not available"],
    [{ firmwareClass: "dev" }, "no firmware for compute trays of class dev"],
    [{ machine: null }, "is retired"],
    [{ machine: { ...machine, spec: { ...machine.spec, provider: "maas" } } }, "only MAAS touches its BMC"],
  ])("is skipped, visibly, where there is nothing to write: %o", async (change, why) => {
    expect(await handle(host("ready", { reprovisionRequest: request, ...change }))).toMatchObject({
      event: "upgrade_skipped",
      message: expect.stringContaining(why),
    });
  });

  test("of a tray that waits for its rack is carried out only with reset", async () => {
    const waiting = (reset: boolean) =>
      handle(host("waiting_for_rack_firmware_upgrade", { reprovisionRequest: { ...request, reset } }));
    expect(await waiting(false)).toMatchObject({ type: "waiting" });
    expect(await waiting(true)).toMatchObject({ event: "own_upgrade_begun", data: { retry: 0 } });
  });
});

describe("a failed upgrade", () => {
  const failed = (retryCount: number, reportedAt: string, exhausted = false, change: Partial<HostReprovision> = {}) =>
    handle(host("failed_firmware_upgrade", { facts: { retryCount, reportedAt, exhausted }, ...change }));

  test("is tried again after the interval, and not before", async () => {
    expect(await failed(1, ago(minutes(59)))).toMatchObject({ type: "waiting", after: minutes(1) });
    expect(await failed(1, ago(minutes(60)))).toMatchObject({
      event: "own_upgrade_begun",
      data: { retry: 2, request: null },
    });
    expect(started.at(-1)).toMatchObject({ unique: `v7 ${NOW.toISOString()}` });
  });

  test("is tried again as often as it may be, and then says once that this is over", async () => {
    expect(await failed(4, ago(hours(2)))).toMatchObject({ event: "own_upgrade_begun", data: { retry: 5 } });
    expect(await failed(5, ago(hours(2)))).toMatchObject({ event: "retries_exhausted" });
    expect(await failed(5, ago(hours(2)), true)).toMatchObject({ type: "nothing", after: null });
  });

  test("waits while the machine is in use", async () => {
    expect(await failed(1, ago(hours(2)), false, { assigned: "yes" })).toMatchObject({ type: "waiting" });
  });
});

describe("checking_firmware_v2", () => {
  const checking = (run: string | null) =>
    handle(
      host("checking_firmware_v2", {
        related: { run: run === null ? null : { kind: "run", id: "run-1", state: run } },
      }),
    );

  test("waits for its run, and fails when that is gone or has ended without a word", async () => {
    expect(await checking("RUNNING")).toMatchObject({ type: "waiting" });
    for (const state of [null, "SUCCEEDED", "FAILED", "CANCELED"])
      expect(await checking(state)).toMatchObject({ event: "run_lost", effects: [{ type: "alert", open: null }] });
  });
});

test("a tray that nobody asks anything of rests", async () => {
  expect(await handle(host("ready"))).toMatchObject({ type: "nothing", after: null });
});

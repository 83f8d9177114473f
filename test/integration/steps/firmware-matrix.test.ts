import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { systemClock } from "../../../src/kernel/time/clock.ts";
import { milliseconds } from "../../../src/kernel/time/duration.ts";
import { createRedfishMachineProvider } from "../../../src/providers/redfish/machine/redfish-machine-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import type { ProbeReport } from "../../../src/runs/model/step.ts";
import type { UpdateFirmwarePayload } from "../../../src/runs/steps/rack/update-firmware.ts";
import { Visit } from "../../support/firmware/visit.ts";
import { type MachineSite, startMachineSite } from "../../support/machine-site.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const image = Buffer.from(`MILLWRIGHT-FW GB-2U-96C bmc 99.1\n${"image ".repeat(20_000)}`);

let site: MachineSite;
let files: Server;
let used = 0;
const open: (() => Promise<void> | void)[] = [];

beforeAll(async () => {
  // A flash takes 600 ms, a restart of a BMC 20 ms.
  site = await startMachineSite({ speed: 1_000, site: "racks=2" });
  files = createServer((_request, response) => response.end(image));
  await new Promise<void>((resolve) => files.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  await site.control("DELETE", "/faults");
  for (const close of open.splice(0)) await close();
});
afterAll(async () => {
  await new Promise((resolve) => files.close(resolve));
  await site.stop();
});

const UPDATE: UpdateFirmwarePayload = {
  firmware_id: "fw",
  component: "bmc",
  version: "99.1",
  digest: "sha256:1",
  targets: [],
  activation: "none",
  settle_seconds: 2,
};

interface Truth {
  readonly components: readonly { readonly id: string; readonly version: string }[];
  readonly flashes: readonly { readonly way: string; readonly to: string }[];
}

/** A tray that no test has used yet, with these traits and this fault, whose certificate was pinned. */
async function aDevice(traits: readonly string[], fault?: object) {
  const gateway = createBmcGateway({ backOff: milliseconds(5), openFor: milliseconds(100) });
  const provider = createRedfishMachineProvider({ gateway });
  open.push(
    () => provider.close(),
    () => gateway.close(),
  );
  const machine = site.machines[used];
  if (machine === undefined) throw new Error("more machines are needed");
  used += 1;
  const { machine_id: id, serial } = machine;
  const { certificateFingerprint } = await provider.can.manager.readRoot(
    { ...site.bmc(machine), trust: { mode: "pin" } },
    aCall(),
  );
  const trust = { mode: "pin", ...(certificateFingerprint && { fingerprint256: certificateFingerprint }) } as const;
  await site.control("PUT", `/devices/${id}/profile`, { profile: traits });
  if (fault !== undefined) await site.control("POST", "/faults", { device: id, fault });
  const device = {
    provider,
    clock: systemClock,
    serial,
    bmc: async () => ({ ...site.bmc(machine), trust }),
    image,
    uri: () => `http://127.0.0.1:${(files.address() as AddressInfo).port}/image`,
  };
  return { device, truth: () => site.control<Truth>("GET", `/devices/${id}`) };
}

/** Probes until it is over; a BMC that starts and rejects us is left alone for seconds, which is real time. */
async function follow(visit: Visit, timeout = 40_000): Promise<ProbeReport> {
  const until = Date.now() + timeout;
  for (;;) {
    const report = await visit.probe();
    if (report.state === "done" || Date.now() > until) return report;
    expect(report.state, report.message).not.toBe("not_done"); // would be a second flash
    await pause(50);
  }
}

const bmcOf = ({ components }: Truth) => components.find(({ id }) => id === "bmc")?.version;

describe.each([{ dies: false }, { dies: true }])("a flash whose process dies before the receipt: $dies", ({ dies }) => {
  test.each([
    ["an ideal BMC", [], "simple"],
    ["push_only", ["push_only"], "push"],
    ["multipart_only", ["multipart_only"], "multipart"],
    ["simple_only", ["simple_only"], "simple"],
    ["tasks_unlisted", ["tasks_unlisted"], "simple"],
    ["task_without_percent", ["task_without_percent"], "simple"],
    ["task_gone_when_done", ["task_gone_when_done"], "simple"],
    ["version_shown_late", ["version_shown_late"], "simple"],
    ["busy_though_taken", ["busy_though_taken"], "simple"],
    ["busy though taken, and unlisted", ["busy_though_taken", "tasks_unlisted"], "simple"],
    ["new_certificate_after_flash", ["new_certificate_after_flash"], "simple"],
    [
      "new certificate, unlisted and gone",
      ["new_certificate_after_flash", "tasks_unlisted", "task_gone_when_done"],
      "simple",
    ],
  ])("ends proven, with one flash: %s", async (_name, traits, way) => {
    const { device, truth } = await aDevice(traits);
    const visit = await (await new Visit(device, "update_firmware", UPDATE).before()).act({ dies });
    expect(await follow(visit)).toMatchObject({ state: "done", verdict: "proven" });
    const seen = await truth();
    expect(seen.flashes).toMatchObject([{ way, to: "99.1" }]);
    expect(bmcOf(seen)).toBe("99.1");
  });
});

describe("a flash in trouble", () => {
  test("that fails says so, and is one flash", async () => {
    const { device, truth } = await aDevice([], { type: "flash_fails" });
    const visit = await (await new Visit(device, "update_firmware", UPDATE).before()).act();
    await expect(follow(visit)).rejects.toMatchObject({ code: "firmware_task_failed" });
    expect((await truth()).flashes).toHaveLength(1);
  });

  test("that lies is found out by the version", async () => {
    const { device, truth } = await aDevice([], { type: "flash_lies" });
    const visit = await (await new Visit(device, "update_firmware", UPDATE).before()).act();
    await expect(follow(visit)).rejects.toMatchObject({ code: "firmware_not_applied", facts: { expected: "99.1" } });
    expect((await truth()).flashes).toHaveLength(1);
  });

  test("that is stuck shows where, and is not begun again", async () => {
    const { device, truth } = await aDevice([], { type: "flash_stuck", percent: 40 });
    const visit = await (await new Visit(device, "update_firmware", UPDATE).before()).act();
    const report = await follow(visit, 1_500);
    expect(report).toMatchObject({ state: "in_progress" });
    expect(report.message).toContain("40 %");
    expect((await truth()).flashes).toHaveLength(1);
  });

  test("whose task the BMC loses is proven by the version", async () => {
    const { device, truth } = await aDevice([], { type: "task_lost" });
    const visit = await (await new Visit(device, "update_firmware", UPDATE).before()).act();
    expect(await follow(visit)).toMatchObject({ state: "done", verdict: "proven" });
    expect((await truth()).flashes).toHaveLength(1);
  });

  test("after which the BMC is away for a while is waited for", async () => {
    const { device, truth } = await aDevice([], { type: "unreachable_after_flash", ms: 1_000 });
    const visit = await (await new Visit(device, "update_firmware", UPDATE).before()).act();
    expect(await follow(visit)).toMatchObject({ state: "done", verdict: "proven" });
    expect((await truth()).flashes).toHaveLength(1);
  });

  test("that waits for a restart of the BMC runs after it", async () => {
    const { device, truth } = await aDevice(["version_needs_reset", "new_certificate_after_flash"]);
    const payload = { ...UPDATE, activation: "bmc_reset" };
    const visit = await (await new Visit(device, "update_firmware", payload).before()).act();
    expect(await follow(visit)).toMatchObject({ state: "done", verdict: "staged" });
    const wanted = [{ component: "bmc", version: "99.1", targets: [] }];
    const activate = new Visit(device, "activate_firmware", { wanted, activation: "bmc_reset", settle_seconds: 5 });
    await (await activate.before()).act();
    expect(await follow(activate)).toMatchObject({ state: "done", verdict: "proven" });
    expect(bmcOf(await truth())).toBe("99.1");
  });
});

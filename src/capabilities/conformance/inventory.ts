import { beforeEach, describe, expect, test } from "vitest";
import type { Inventory } from "../inventory.ts";
import { need } from "../provider.ts";
import { aCall, type DeviceBench, type DeviceTrouble, type SetUpBench } from "./device-bench.ts";
import { describeFailures } from "./failures.ts";

/** What every provider of inspection must do. */
export function describeInventory(name: string, setUp: SetUpBench, troubles: readonly DeviceTrouble[]): void {
  describe(`inspection of ${name}`, () => {
    let bench: DeviceBench;
    let inspect: Inventory;
    beforeEach(async () => {
      bench = await setUp();
      inspect = need(bench.provider, ["inventory"]).inventory;
    });

    test("tells who the device is", async () => {
      const identity = await inspect.identify(bench.target, aCall());
      expect(identity).toMatchObject({
        serial: bench.serial,
        vendor: expect.stringMatching(/./),
        model: expect.stringMatching(/./),
      });
    });

    test("shows the certificate by which the device can be known again, and is the same device by it", async () => {
      const { certificateFingerprint } = await inspect.identify(bench.target, aCall());
      expect(certificateFingerprint).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/);
      const pinned = { ...bench.target, trust: { mode: "pin", fingerprint256: certificateFingerprint ?? "" } } as const;
      await expect(inspect.identify(pinned, aCall())).resolves.toMatchObject({ serial: bench.serial });
    });

    test("sends no request, and so no password, to a device with another certificate than the pinned one", async () => {
      const before = await bench.requestsReceived();
      const other = { ...bench.target, trust: { mode: "pin", fingerprint256: "AA:BB" } } as const;
      const failure: unknown = await inspect.identify(other, aCall()).catch((error: unknown) => error);
      expect(failure).toMatchObject({ disposition: "fail", family: "unproven" });
      expect((failure as Error).message).toMatch(/AA:BB.*accept-certificate/);
      expect(await bench.requestsReceived()).toBe(before);
    });

    test("sends no request to a device whose certificate no known CA has signed, when a CA is asked for", async () => {
      const before = await bench.requestsReceived();
      const failure: unknown = await inspect
        .identify({ ...bench.target, trust: { mode: "ca" } }, aCall())
        .catch((error: unknown) => error);
      expect(failure).toMatchObject({ disposition: "fail", family: "unproven" });
      expect(await bench.requestsReceived()).toBe(before);
    });

    test.each(["on", "off"] as const)("lists every power supply of a device that is %s", async (state) => {
      await bench.switchAtRack(state);
      const inventory = await inspect.readInventory(bench.target, aCall());
      expect(inventory.identity.serial).toBe(bench.serial);
      expect(inventory.bmcFirmware).toMatch(/./);
      expect(inventory.powerSupplies).toHaveLength(bench.powerSupplies);
      expect(new Set(inventory.powerSupplies.map(({ serial }) => serial)).size).toBe(bench.powerSupplies);
      expect(inventory.powerSupplies.map(({ on }) => on)).toEqual(inventory.powerSupplies.map(() => state === "on"));
    });

    test("changes nothing on the device", async () => {
      await inspect.readInventory(bench.target, aCall());
      expect(await bench.commandsAccepted()).toBe(0);
      expect(await bench.realPower()).toBe("on");
    });

    describeFailures(() => bench, troubles, {
      identify: ({ provider, target }, call) => need(provider, ["inventory"]).inventory.identify(target, call),
      readInventory: ({ provider, target }, call) =>
        need(provider, ["inventory"]).inventory.readInventory(target, call),
    });
  });
}

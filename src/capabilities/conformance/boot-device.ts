import { beforeEach, describe, expect, test } from "vitest";
import { BOOT_SOURCES, type BootDevice, type BootSource } from "../boot-device.ts";
import { DeviceFailure } from "../device-failure.ts";
import { need } from "../provider.ts";
import { aCall, type DeviceTrouble, type SetUpBench } from "./device-bench.ts";
import { describeFailures } from "./failures.ts";
import { eventually, type MachineBench, type MachineLimit, unless } from "./machine-bench.ts";

/** Some BMCs want to be told where the boot file is; nobody fetches it here. */
const BOOT_FILE = "http://127.0.0.1/boot.efi";
const LIMITS: Partial<Record<BootSource, MachineLimit>> = { disk: "boot_from_disk", http: "boot_from_http" };

/** What every provider of boot devices must do. */
export function describeBootDevice(
  name: string,
  setUp: SetUpBench<MachineBench>,
  troubles: readonly DeviceTrouble[],
): void {
  describe(`boot device of ${name}`, () => {
    let bench: MachineBench;
    let boot: BootDevice;
    beforeEach(async () => {
      bench = await setUp();
      boot = need(bench.provider, ["boot"]).boot;
    });

    const read = () => boot.readBootOverride(bench.target, aCall());
    const set = (source: BootSource) =>
      boot.setBootOverride(bench.target, source, aCall(), source === "http" ? { httpUri: BOOT_FILE } : {});
    const clear = () => boot.clearBootOverride(bench.target, aCall());
    const ownOrder = () => (bench.cannot.includes("boot_in_own_order") ? "disk" : "none");
    const expectOverride = async (source: BootSource | "none") => {
      expect(await read()).toMatchObject({ source });
      // What its own order is called already need not be set.
      const real = [source, ...(source === ownOrder() ? ["none"] : [])];
      expect(real).toContain((await bench.realOverride()).source);
    };

    test("reads none, or the disk, from a machine that boots in its own order", async () => {
      expect(["none", ownOrder()]).toContain((await read()).source);
      expect(await bench.realOverride()).toMatchObject({ source: "none" });
    });

    test.each(BOOT_SOURCES)("arms %s for the next boot and reads it back, or refuses it for good", async (source) => {
      if (source === "cd" && bench.cannot.includes("boot_from_empty_drive")) {
        await expect(set(source)).rejects.toBeInstanceOf(DeviceFailure);
        expect(await bench.realOverride()).toMatchObject({ source: "none" });
        return;
      }
      const limit = LIMITS[source];
      if (limit !== undefined && bench.cannot.includes(limit)) {
        await expect(set(source)).rejects.toMatchObject({ disposition: "fail", family: "declines" });
        await expectOverride("none");
        return;
      }
      await set(source);
      await expectOverride(source);
      await set(source);
      await expectOverride(source);
    });

    test("puts one source in the place of another", async () => {
      await set(bench.cannot.includes("boot_from_empty_drive") ? "disk" : "cd");
      await set("pxe");
      await expectOverride("pxe");
    });

    test("takes it back, also when there is nothing to take back", async () => {
      const left = ownOrder();
      await clear();
      expect(["none", left]).toContain((await read()).source);
      await set("pxe");
      await clear();
      await expectOverride(left);
      await clear();
      await expectOverride(left);
    });

    test("is used up by a boot", async (context) => {
      unless(bench, "use_up_override", context);
      unless(bench, "boot_from_disk", context);
      await set("disk");
      await need(bench.provider, ["reset"]).reset.resetPower(bench.target, "forced", aCall());
      await eventually(() => expectOverride("none"));
    });

    test("neither restarts the machine nor switches it", async () => {
      await set("pxe");
      await clear();
      expect(await bench.restarts()).toBe(0);
      expect(await bench.realPower()).toBe("on");
    });

    describeFailures(() => bench, troubles, {
      readBootOverride: ({ provider, target }, call) => need(provider, ["boot"]).boot.readBootOverride(target, call),
      setBootOverride: ({ provider, target }, call) =>
        need(provider, ["boot"]).boot.setBootOverride(target, "pxe", call),
      clearBootOverride: ({ provider, target }, call) => need(provider, ["boot"]).boot.clearBootOverride(target, call),
    });
  });
}

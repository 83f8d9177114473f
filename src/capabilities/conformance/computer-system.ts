import { beforeEach, describe, expect, test } from "vitest";
import type { ComputerSystem } from "../computer-system.ts";
import { need } from "../provider.ts";
import { aCall, type DeviceTrouble, type SetUpBench } from "./device-bench.ts";
import { describeFailures } from "./failures.ts";
import { eventually, type MachineBench } from "./machine-bench.ts";

/** What every provider that reads machines must do. */
export function describeComputerSystem(
  name: string,
  setUp: SetUpBench<MachineBench>,
  troubles: readonly DeviceTrouble[],
): void {
  describe(`inspection of ${name}`, () => {
    let bench: MachineBench;
    let machine: ComputerSystem;
    beforeEach(async () => {
      bench = await setUp();
      machine = need(bench.provider, ["system"]).system;
    });
    const readBoot = () => machine.readBoot(bench.target, aCall());

    test("tells who the machine is, by what its operating system goes by, too", async () => {
      const identity = await machine.identify(bench.target, aCall());
      expect(identity).toMatchObject({ serial: bench.serial, systemUuid: bench.systemUuid });
      if (bench.cannot.includes("tell_macs")) expect(identity.macs).toEqual([]);
      else expect(identity.macs).toEqual(bench.macs);
    });

    test("sees that a machine is off, and that one that is on is not", async () => {
      expect((await readBoot()).progress).not.toBe("off");
      await bench.switchAtRack("off");
      expect(await readBoot()).toMatchObject({ progress: "off" });
    });

    test("tells of a reset by another time than before, or of none at all where nothing tells", async () => {
      const { lastReset } = await readBoot();
      await need(bench.provider, ["reset"]).reset.resetPower(bench.target, "forced", aCall());
      if (bench.cannot.includes("tell_last_reset")) {
        expect([lastReset, (await readBoot()).lastReset]).toEqual([null, null]);
        return;
      }
      expect(lastReset).not.toBeNull();
      await eventually(async () => expect((await readBoot()).lastReset).not.toBe(lastReset));
    });

    test("lists firmware by name and version, that of the BMC among it", async () => {
      const versions = await machine.readFirmware(bench.target, aCall());
      expect(versions).toContainEqual({ name: "BMC", version: expect.stringMatching(/\d/) });
      for (const one of versions) {
        expect(one).toEqual({ name: expect.stringMatching(/./), version: expect.stringMatching(/./) });
      }
    });

    test("changes nothing on the machine", async () => {
      await machine.identify(bench.target, aCall());
      await readBoot();
      await machine.readFirmware(bench.target, aCall());
      expect(await bench.commandsAccepted()).toBe(0);
      expect(await bench.restarts()).toBe(0);
      expect(await bench.realPower()).toBe("on");
      expect(await bench.realOverride()).toMatchObject({ source: "none" });
    });

    describeFailures(() => bench, troubles, {
      identify: ({ provider, target }, call) => need(provider, ["system"]).system.identify(target, call),
      readBoot: ({ provider, target }, call) => need(provider, ["system"]).system.readBoot(target, call),
      readFirmware: ({ provider, target }, call) => need(provider, ["system"]).system.readFirmware(target, call),
    });
  });
}

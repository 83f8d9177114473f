import { beforeEach, describe, expect, test, vi } from "vitest";
import type { PowerControl } from "../power-control.ts";
import { need } from "../provider.ts";
import { aCall, type DeviceTrouble, type PowerBench, type SetUpBench } from "./device-bench.ts";
import { describeFailures } from "./failures.ts";
import { unlessMade } from "./machine-bench.ts";

/** What every provider of power control must do. */
export function describePowerControl(
  name: string,
  setUp: SetUpBench<PowerBench>,
  troubles: readonly DeviceTrouble[],
): void {
  describe(`power control of ${name}`, () => {
    let bench: PowerBench;
    let power: PowerControl;
    beforeEach(async () => {
      bench = await setUp();
      power = need(bench.provider, ["power"]).power;
    });

    const read = () => power.readPower(bench.target, aCall());
    const set = (desired: "on" | "off") => power.setPower(bench.target, desired, aCall());
    const untilRead = (expected: "on" | "off") =>
      vi.waitFor(async () => expect(await read()).toBe(expected), { timeout: 10_000, interval: 20 });

    test.each(["on", "off"] as const)("reads %s from a device that is", async (state) => {
      await bench.switchAtRack(state);
      expect(await read()).toBe(state);
    });

    test("turns a device off and on again, each with one command", async () => {
      await set("off");
      await untilRead("off");
      expect(await bench.realPower()).toBe("off");
      expect(await bench.commandsAccepted()).toBe(1);
      await set("on");
      await untilRead("on");
      expect(await bench.realPower()).toBe("on");
      expect(await bench.commandsAccepted()).toBe(2);
    });

    test.each(["on", "off"] as const)("sends nothing to a device that is %s already", async (state) => {
      await bench.switchAtRack(state);
      await set(state);
      await set(state);
      expect(await bench.commandsAccepted()).toBe(0);
    });

    test("sends one command however often it is asked while the change is under way", async () => {
      await set("off");
      await set("off");
      await set("off");
      await untilRead("off");
      await set("off");
      expect(await bench.commandsAccepted()).toBe(1);
    });

    test("sends a command again for a state that somebody at the rack has undone", async () => {
      await set("off");
      await untilRead("off");
      await set("off");
      await bench.switchAtRack("on");
      await set("off");
      await untilRead("off");
      expect(await bench.commandsAccepted()).toBe(2);
    });

    test("says whether it sent a command", async () => {
      expect(await set("on")).toEqual({ commanded: false });
      expect(await set("off")).toEqual({ commanded: true });
      expect(await set("off")).toEqual({ commanded: false });
    });

    test("sends no command that its caller knows to have been accepted a moment ago, by whomever", async () => {
      const told = { at: new Date() };
      expect(await power.setPower(bench.target, "off", aCall(), told)).toEqual({ commanded: false });
      expect(await bench.commandsAccepted()).toBe(0);
    });

    test("sends one that was accepted long ago and never took effect", async () => {
      const told = { at: new Date(Date.now() - 3_600_000) };
      expect(await power.setPower(bench.target, "off", aCall(), told)).toEqual({ commanded: true });
      expect(await bench.commandsAccepted()).toBe(1);
    });

    test("changes its mind when asked for the opposite meanwhile", async () => {
      await set("off");
      await set("on");
      await untilRead("on");
      // A device that shows a change late shows the old state until then: what it ends in is what counts.
      await vi.waitFor(async () => expect(await bench.realPower()).toBe("on"), { timeout: 10_000, interval: 20 });
    });

    test("never reads a state that a device only accepted", async (context) => {
      unlessMade(troubles, "lies_about_accepting", context);
      await bench.cause("lies_about_accepting");
      await set("off");
      expect(await read()).toBe("on");
      expect(await bench.commandsAccepted()).toBe(1);
    });

    test.for(["on", "off"] as const)(
      "does not believe a device that says %s while its meter says otherwise",
      async (claimed, context) => {
        unlessMade(troubles, "lies_about_power", context);
        const real = claimed === "on" ? "off" : "on";
        await bench.switchAtRack(real);
        await bench.cause("lies_about_power");
        await set(claimed);
        // While it claims to be busy there is nothing to disprove yet.
        await vi.waitFor(async () => expect(await read()).toBe("unknown"), { timeout: 10_000, interval: 20 });
        expect(await bench.realPower()).toBe(real);
      },
    );

    describeFailures(() => bench, troubles, {
      readPower: ({ provider, target }, call) => need(provider, ["power"]).power.readPower(target, call),
      setPower: ({ provider, target }, call) => need(provider, ["power"]).power.setPower(target, "on", call),
    });
  });
}

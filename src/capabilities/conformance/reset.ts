import { beforeEach, describe, expect, test } from "vitest";
import type { PowerControl } from "../power-control.ts";
import { need } from "../provider.ts";
import { RESET_MODES, type Reset, type ResetMode } from "../reset.ts";
import { aCall, type DeviceTrouble, type SetUpBench } from "./device-bench.ts";
import { describeFailures } from "./failures.ts";
import { eventually, type MachineBench } from "./machine-bench.ts";

/** What every provider of restarts must do. */
export function describeReset(name: string, setUp: SetUpBench<MachineBench>, troubles: readonly DeviceTrouble[]): void {
  describe(`restart of ${name}`, () => {
    let bench: MachineBench;
    let reset: Reset;
    let power: PowerControl;
    beforeEach(async () => {
      bench = await setUp();
      ({ reset, power } = need(bench.provider, ["reset", "power"]));
    });

    const restart = (mode: ResetMode) => reset.resetPower(bench.target, mode, aCall());
    const untilRestarted = (times: number, mode: ResetMode) =>
      eventually(async () => {
        // As whoever asks does: one that only went down is switched on.
        if (mode === "graceful" && bench.cannot.includes("restart_gracefully"))
          await power.setPower(bench.target, "on", aCall());
        expect(await bench.restarts()).toBe(times);
        expect(await bench.realPower()).toBe("on");
      });

    test.each(RESET_MODES)("restarts a machine once, %s, and leaves it on", async (mode) => {
      await restart(mode);
      await untilRestarted(1, mode);
    });

    test("restarts it once more each time that it is asked: whoever asks twice gets two", async () => {
      await restart("forced");
      await untilRestarted(1, "forced");
      await restart("forced");
      await untilRestarted(2, "forced");
    });

    test.each(RESET_MODES)("switches on a machine that is off, also when asked %s", async (mode) => {
      await bench.switchAtRack("off");
      await restart(mode);
      await eventually(async () => expect(await bench.realPower()).toBe("on"));
    });

    describeFailures(() => bench, troubles, {
      resetPower: ({ provider, target }, call) => need(provider, ["reset"]).reset.resetPower(target, "forced", call),
    });
  });
}

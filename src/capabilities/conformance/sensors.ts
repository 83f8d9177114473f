import { beforeEach, describe, expect, test } from "vitest";
import { need } from "../provider.ts";
import type { Sensors } from "../sensors.ts";
import { aCall, type DeviceTrouble, type PowerBench, type SetUpBench } from "./device-bench.ts";
import { describeFailures } from "./failures.ts";
import { type MachineLimit, unless } from "./machine-bench.ts";

export interface SensorsBench extends PowerBench {
  readonly cannot: readonly MachineLimit[];
}

/** What every provider of sensors and logs must do. */
export function describeSensors(
  name: string,
  setUp: SetUpBench<SensorsBench>,
  troubles: readonly DeviceTrouble[],
): void {
  describe(`sensors of ${name}`, () => {
    let bench: SensorsBench;
    let sensors: Sensors;
    beforeEach(async () => {
      bench = await setUp();
      sensors = need(bench.provider, ["sensors"]).sensors;
    });

    test("reads health, and what is measured with names, numbers and units", async () => {
      const { status, readings } = await sensors.readHealth(bench.target, aCall());
      expect(status).toBe("ok");
      expect(readings.length).toBeGreaterThan(0);
      for (const reading of readings) {
        expect(reading).toEqual({
          name: expect.stringMatching(/./),
          value: expect.any(Number),
          unit: expect.stringMatching(/./),
        });
      }
    });

    test("measures less when the device is off", async (context) => {
      unless(bench, "measure_power", context);
      const total = async () =>
        (await sensors.readHealth(bench.target, aCall())).readings
          .filter(({ unit }) => unit === "W")
          .reduce((sum, { value }) => sum + value, 0);
      const on = await total();
      await bench.switchAtRack("off");
      expect(await total()).toBeLessThan(on);
    });

    test("reads no more of the log than asked for", async () => {
      expect((await sensors.readLog(bench.target, aCall(), { limit: 1 })).length).toBeLessThanOrEqual(1);
      expect(await sensors.readLog(bench.target, aCall(), { limit: 0 })).toEqual([]);
    });

    test("changes nothing, not even in the log", async () => {
      const before = await sensors.readLog(bench.target, aCall(), { limit: 10 });
      await sensors.readHealth(bench.target, aCall());
      expect(await sensors.readLog(bench.target, aCall(), { limit: 10 })).toEqual(before);
      expect(await bench.commandsAccepted()).toBe(0);
      expect(await bench.realPower()).toBe("on");
    });

    test("reads the newest entries of the log first", async (context) => {
      unless(bench, "log_what_happens", context);
      for (const power of ["off", "on", "off", "on"] as const) await bench.switchAtRack(power);
      const entries = await sensors.readLog(bench.target, aCall(), { limit: 3 });
      expect(entries).toHaveLength(3);
      const times = entries.map(({ at }) => at?.getTime() ?? Number.NaN);
      expect(times).toEqual(times.toSorted((a, b) => b - a));
      const [newest] = await sensors.readLog(bench.target, aCall(), { limit: 1 });
      expect(newest).toEqual(entries[0]);
    });

    describeFailures(() => bench, troubles, {
      readHealth: ({ provider, target }, call) => need(provider, ["sensors"]).sensors.readHealth(target, call),
      readLog: ({ provider, target }, call) => need(provider, ["sensors"]).sensors.readLog(target, call, { limit: 10 }),
    });
  });
}

import { describe, expect, test } from "vitest";
import { retryable } from "../../../test/support/failures.ts";
import { benchOf, exited, type Fakes, unreachable } from "../../../test/support/runs/step-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { PowerState } from "../../capabilities/power-control.ts";

const identity = { serial: "S1", vendor: "V", model: "M", systemUuid: "u-1", macs: [] };
const machineIs = (power: PowerState, light: "lit" | "dark" | "unknown" = "lit"): Fakes => ({
  power: { readPower: async () => power },
  locator: { readLocator: async () => light },
});

describe("a machine for return", () => {
  test.each([
    ["on", "lit", "not_done"],
    ["powering_on", "lit", "not_done"],
    ["powering_off", "lit", "in_progress"],
    ["unknown", "lit", "in_progress"],
    ["off", "dark", "not_done"],
    ["off", "unknown", "done"],
    ["off", "lit", "done"],
  ] as const)("that is %s with its locator %s is %s", async (power, light, expected) => {
    expect(await benchOf("rma", { reason: "fan" }, machineIs(power, light)).probe({ ticket: null })).toMatchObject({
      state: expected,
    });
  });

  test.each([
    ["lit", { powerState: "off", locatorLit: true }],
    ["unknown", { powerState: "off", locatorLit: true }],
    [undefined, { powerState: "off" }],
  ] as const)(
    "whose locator is %s has it put out when it is back in use, however that comes about",
    async (light, facts) => {
      const can: Fakes = light ? machineIs("off", light) : { power: { readPower: async () => "off" } };
      expect((await benchOf("rma", { reason: "fan" }, can).probe({ ticket: null })).facts).toEqual(facts);
    },
  );

  test("is unknown while its BMC is silent", async () => {
    const bench = benchOf("rma", {}, { power: { readPower: unreachable } });
    expect(await bench.probe({})).toMatchObject({ state: "unknown" });
  });

  test("leaves what it says about itself, as far as it says anything", async () => {
    const can: Fakes = {
      power: {},
      system: { identify: async () => identity, readFirmware: unreachable },
      sensors: {
        readHealth: async () => ({ status: "ok", readings: [] }),
        readLog: async () => [{ id: "1", at: new Date(0), severity: "critical", message: "fan 3 failed" }],
      },
      vitals: {
        readVitals: async () => ({
          serial: null,
          systemUuid: null,
          power: "on",
          health: "critical",
          ailments: [{ name: "Fan 3", health: "critical" }],
        }),
      },
      exec: { run: async () => exited(0, "kernel: bad\n") },
    };
    expect(await benchOf("rma", { reason: "fan" }, can).before()).toEqual({
      reason: "fan",
      ticket: null,
      serial: "S1",
      systemUuid: "u-1",
      vendor: "V",
      model: "M",
      firmware: [],
      health: "critical",
      ailments: [{ name: "Fan 3", health: "critical" }],
      events: [{ id: "1", at: "1970-01-01T00:00:00.000Z", severity: "critical", message: "fan 3 failed" }],
      lastLogs: "kernel: bad\n",
      lastLogsFrom: "system",
    });
  });

  test("whose system tells nothing has the last lines of its BMC's log as its last", async () => {
    const events = [{ id: "1", at: new Date(0), severity: "critical" as const, message: "fan 3 failed" }];
    const can: Fakes = {
      power: {},
      system: { identify: async () => identity, readFirmware: unreachable },
      sensors: { readHealth: unreachable, readLog: async () => events },
      exec: { run: unreachable },
    };
    expect(await benchOf("rma", { reason: "fan" }, can).before()).toMatchObject({
      lastLogs: "1970-01-01T00:00:00.000Z critical: fan 3 failed\n",
      lastLogsFrom: "bmc",
    });
  });

  test("leaves it in the log as lines for people", async () => {
    const bench = benchOf("rma", { reason: "fan" }, { power: { setPower: async () => ({ commanded: true }) } });
    await bench.act({
      reason: "fan",
      ticket: null,
      serial: "S1",
      vendor: "V",
      model: "M",
      health: "critical",
      ailments: [{ name: "Fan 3", health: "critical" }],
      firmware: [
        { name: "BMC", version: "1.0" },
        { name: "BIOS", version: "2.0" },
      ],
      events: [{ id: "1", at: null, severity: "critical", message: "fan 3\nfailed" }],
      lastLogs: "kernel: bad\nkernel: \u001b[2Jworse\n",
      lastLogsFrom: "system",
    });
    expect(bench.log.join("").split("\n")).toEqual([
      "[rma] reason: fan",
      "[rma] machine: V M",
      "[rma] serial: S1",
      "[rma] health: critical; Fan 3 is critical",
      "[rma] firmware: BMC 1.0, BIOS 2.0",
      "[rma] last events of its BMC:",
      "[rma]   critical: fan 3 failed",
      "[rma] last log lines of its system:",
      "[rma]   kernel: bad",
      "[rma]   kernel:  [2Jworse",
      "[rma] power off requested",
      "",
    ]);
  });

  describe("that has no locator light", () => {
    const refused = async () => {
      throw new DeviceFailure("refused_by_device", "bmc", "this machine has no locator light to switch");
    };
    const power = { setPower: async () => ({ commanded: true }) };

    test("goes out without one, and the log says so", async () => {
      const bench = benchOf("rma", {}, { power, locator: { setLocator: refused, readLocator: async () => "unknown" } });
      await bench.act({ ticket: null });
      expect(bench.log.join("")).toContain(
        "[rma] its locator is not lit: this machine has no locator light to switch\n",
      );
    });

    test("is another matter than one that tells that its light is dark, and refuses to light it", async () => {
      const can: Fakes = { power, locator: { setLocator: refused, readLocator: async () => "dark" } };
      await expect(benchOf("rma", {}, can).act({ ticket: null })).rejects.toThrow("no locator light");
    });
  });

  describe("whose BMC is broken itself", () => {
    const failing = (error: () => Error): Fakes => {
      const fail = async () => {
        throw error();
      };
      return {
        power: {},
        system: { identify: async () => identity, readFirmware: fail },
        sensors: { readHealth: fail, readLog: fail },
      };
    };

    test.each(["protocol", "refused_by_device", "certificate_changed", "busy"] as const)(
      "(%s) is taken out with what it still tells",
      async (code) => {
        const can = failing(() => new DeviceFailure(code, "bmc", "broken", { disposition: "fail" }));
        expect(await benchOf("rma", { reason: "bmc" }, can).before()).toMatchObject({
          serial: "S1",
          firmware: [],
          health: null,
          events: [],
        });
      },
    );

    test("is not taken for one when we are the ones who stopped asking, or have a fault of our own", async () => {
      const stopped = failing(() => retryable("work was stopped before it answered"));
      await expect(benchOf("rma", {}, stopped).before()).rejects.toThrow("stopped");
      await expect(
        benchOf(
          "rma",
          {},
          failing(() => new TypeError("bug")),
        ).before(),
      ).rejects.toThrow("bug");
    });
  });
});

import { describe, expect, test } from "vitest";
import type { PowerState } from "../../capabilities/power-control.ts";
import { benchOf, exited, type Fakes, unreachable } from "./step-bench.ts";

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

  test("is unknown while its BMC is silent", async () => {
    const bench = benchOf("rma", {}, { power: { readPower: unreachable } });
    expect(await bench.probe({})).toMatchObject({ state: "unknown" });
  });

  test("leaves what it says about itself, as far as it says anything", async () => {
    const can: Fakes = {
      power: {},
      machine: { identify: async () => identity, readFirmware: unreachable },
      sensors: {
        readHealth: unreachable,
        readLog: async () => [{ id: "1", at: new Date(0), severity: "critical", message: "fan 3 failed" }],
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
      health: null,
      events: [{ id: "1", at: "1970-01-01T00:00:00.000Z", severity: "critical", message: "fan 3 failed" }],
      lastLogs: "kernel: bad\n",
    });
  });
});

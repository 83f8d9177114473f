import { afterEach, describe, expect, test } from "vitest";
import { describeBootDevice } from "../../../src/capabilities/conformance/boot-device.ts";
import { describeComputerSystem } from "../../../src/capabilities/conformance/computer-system.ts";
import { aCall, type DeviceTrouble } from "../../../src/capabilities/conformance/device-bench.ts";
import { describeLocator } from "../../../src/capabilities/conformance/locator.ts";
import type { MachineBench } from "../../../src/capabilities/conformance/machine-bench.ts";
import { describePowerControl } from "../../../src/capabilities/conformance/power-control.ts";
import { describeReset } from "../../../src/capabilities/conformance/reset.ts";
import { describeSensors } from "../../../src/capabilities/conformance/sensors.ts";
import { describeVitals } from "../../../src/capabilities/conformance/vitals.ts";
import { milliseconds } from "../../../src/kernel/time/duration.ts";
import {
  createIpmiProvider,
  type IpmiProvider,
  type IpmiProviderOptions,
} from "../../../src/providers/ipmi/ipmi-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import {
  type IpmiSimulator,
  type IpmiSimulatorOptions,
  ipmiMissing,
  startIpmiSimulator,
} from "../../support/counterparts/ipmi-simulator.ts";
import { needing } from "../../support/counterparts/needing.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function startBmc(options: IpmiSimulatorOptions = {}): Promise<IpmiSimulator> {
  const simulator = await startIpmiSimulator(options);
  closing.push(() => simulator.stop());
  return simulator;
}

function reach(options: Partial<IpmiProviderOptions> = {}): IpmiProvider {
  const gateway = createBmcGateway({ backOff: milliseconds(5), openFor: milliseconds(100) });
  closing.push(async () => gateway.close());
  return createIpmiProvider({ gateway, ...options });
}

const SOURCES = { none: "none", pxe: "pxe", default: "disk", cdrom: "cd" } as const;
/** Over UDP there is no connection to cut, and no answer that is not signed. */
const TROUBLES: readonly DeviceTrouble[] = ["hangs"];

async function setUp(): Promise<MachineBench> {
  const simulator = await startBmc();
  const count = async (...words: readonly string[]) =>
    (await simulator.told()).filter((line) => words.includes(line)).length;
  return {
    provider: reach({ sensorsEvery: milliseconds(0) }),
    target: simulator.target,
    serial: simulator.serial,
    systemUuid: simulator.systemUuid,
    macs: [],
    // This BMC forgets nothing at a boot: "once" cannot be seen on it.
    cannot: [
      "tell_last_reset",
      "tell_macs",
      "tell_locator",
      "use_up_override",
      "restart_gracefully",
      "boot_from_http",
      "tell_serial_at_a_glance",
      "tell_warnings",
      "count_requests",
      "measure_power",
      "log_what_happens",
    ],
    mediumLocation: "",
    realPower: () => simulator.power(),
    switchAtRack: (power) => simulator.switchAtRack(power),
    commandsAccepted: () => count("power 0", "power 1"),
    restarts: () => count("reset 1", "shutdown 1"),
    requestsReceived: async () => simulator.requests,
    async realOverride() {
      const boot = await simulator.boot();
      return { source: SOURCES[boot as keyof typeof SOURCES] ?? "other" };
    },
    async realLocator() {
      const last = (await simulator.told()).findLast((line) => line.startsWith("identify"));
      return last === "identify 0 1" ? "lit" : "dark";
    },
    realMedium: async () => null,
    async ail(health) {
      await simulator.setTemperature(health === null ? 25 : 75);
      return "Air";
    },
    cause: async () => {
      simulator.silent = true;
    },
    putRight: async () => {
      simulator.silent = false;
    },
  };
}

describe.skipIf(ipmiMissing !== "")(needing("against ipmi_sim", ipmiMissing), () => {
  describePowerControl("a machine over IPMI", setUp, TROUBLES);
  describeReset("a machine over IPMI", setUp, TROUBLES);
  describeBootDevice("a machine over IPMI", setUp, TROUBLES);
  describeLocator("a machine over IPMI", setUp, TROUBLES);
  describeComputerSystem("a machine over IPMI", setUp, TROUBLES);
  describeSensors("a machine over IPMI", setUp, TROUBLES);
  describeVitals("a machine over IPMI", setUp, TROUBLES);

  test("a system is asked to go down, and switching it on is left to whoever asked", async () => {
    const simulator = await startBmc();
    const { reset, power } = reach().can;
    await reset.resetPower(simulator.target, "graceful", aCall());
    expect(await simulator.told()).toEqual(["shutdown 1"]);
    await power.setPower(simulator.target, "on", aCall());
    expect(await simulator.told()).toEqual(["shutdown 1", "power 1"]);
  });

  test("a system that does not go down is not reset under it unless that is asked for", async () => {
    const simulator = await startBmc();
    await simulator.setObeysShutdown(false);
    await reach().can.reset.resetPower(simulator.target, "graceful", aCall());
    expect(await simulator.told()).toEqual(["shutdown 1"]);
    expect(await simulator.power()).toBe("on");
  });

  test("what is measured and what is in the log is read, and the log is not touched", async () => {
    const simulator = await startBmc();
    const { sensors } = reach().can;
    expect(await sensors.readHealth(simulator.target, aCall())).toEqual({
      status: "ok",
      readings: [{ name: "Air", value: 25, unit: "Cel" }],
    });
    const log = await sensors.readLog(simulator.target, aCall(), { limit: 5 });
    expect(log).toEqual([
      // Its clock was never set, so it has no time to tell.
      {
        id: "1",
        at: null,
        severity: "critical",
        message: "Temperature #0x01 · Upper Critical going high · Asserted",
      },
    ]);
    expect(await sensors.readLog(simulator.target, aCall(), { limit: 5 })).toEqual(log);
    expect(await sensors.readLog(simulator.target, aCall(), { limit: 0 })).toEqual([]);
  });

  test("a sensor in a critical or non-recoverable range is named, and is checked again after a while only", async () => {
    const simulator = await startBmc();
    const at = { now: () => new Date(0), time: 0, monotonic: () => at.time };
    const { vitals, sensors } = reach({ clock: at }).can;
    const read = async () => vitals.readVitals(simulator.target, aCall());
    expect(await read()).toMatchObject({ health: "ok", ailments: [] });
    for (const degrees of [75, 85]) {
      await simulator.setTemperature(degrees);
      at.time += 60_000;
      await read();
      at.time += 300_000;
      expect(await read()).toMatchObject({ health: "critical", ailments: [{ name: "Air", health: "critical" }] });
      expect(await sensors.readHealth(simulator.target, aCall())).toMatchObject({ status: "critical" });
    }
    await simulator.setTemperature(65);
    at.time += 300_000;
    expect(await read()).toMatchObject({ health: "ok", ailments: [] });
  });

  test("how a machine is takes two requests, and tells which machine it is", async () => {
    const simulator = await startBmc();
    expect(await reach().can.vitals.readVitals(simulator.target, aCall())).toEqual({
      serial: null,
      systemUuid: simulator.systemUuid,
      power: "on",
      health: "ok",
      ailments: [],
    });
  });

  test("a BMC that refuses suite 17 is met with suite 3, unless 17 is insisted on", async () => {
    const simulator = await startBmc();
    expect(await reach({ cipher: "auto" }).can.power.readPower(simulator.target, aCall())).toBe("on");
    expect(await reach({ cipher: "3" }).can.power.readPower(simulator.target, aCall())).toBe("on");
    await expect(reach({ cipher: "17" }).can.power.readPower(simulator.target, aCall())).rejects.toMatchObject({
      disposition: "fail",
      family: "declines",
      message: expect.stringContaining("ipmi.cipher"),
    });
  });

  test("a BMC outside of the allowed networks is not called", async () => {
    const simulator = await startBmc();
    const { power } = reach({ mayReach: () => false }).can;
    await expect(power.readPower(simulator.target, aCall())).rejects.toThrow("bmc.allowed_networks");
    expect(simulator.requests).toBe(0);
  });
});

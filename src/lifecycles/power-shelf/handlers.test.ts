import { beforeEach, describe, expect, test, vi } from "vitest";
import { final, forPerson, retryable } from "../../../test/support/failures.ts";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { DeviceInventory, Inventory } from "../../capabilities/inventory.ts";
import type { PowerControl, PowerState } from "../../capabilities/power-control.ts";
import type { Capabilities } from "../../capabilities/provider.ts";
import type { Sensors } from "../../capabilities/sensors.ts";
import { parsePowerShelfId } from "../../kernel/ids.ts";
import type { Outcome } from "../../kernel/outcome.ts";
import { minutes, seconds } from "../../kernel/time/duration.ts";
import { type PowerShelfContext, powerShelfHandlers } from "./handlers.ts";
import { powerShelfLifecycle } from "./lifecycle.ts";
import type { PowerShelf } from "./power-shelf.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const bmc: BmcTarget = {
  address: "127.1.0.1",
  port: 8443,
  scheme: "https",
  username: "root",
  password: "not-shown",
  trust: { mode: "pin" },
};
const call: CallContext = {
  signal: new AbortController().signal,
  mayTouchDevice: (wanted) => wanted,
  subject: "power_shelf ps100rs1",
};
const inventory: DeviceInventory = {
  identity: { serial: "SN1", vendor: "Lite-On", model: "PS-1", certificateFingerprint: "AB:CD" },
  bmcFirmware: "1.2.3",
  powerSupplies: [{ name: "psu-0", serial: "P0", firmware: "7", on: true, health: "ok" }],
  capacityWatts: 33_000,
  voltage: 48,
};

const unread: PowerShelf["facts"] = {
  serial: null,
  vendor: null,
  model: null,
  bmcFirmware: null,
  certificateFingerprint: null,
  capacityWatts: null,
  voltage: null,
  powerState: null,
  powerSupplies: [],
  health: null,
  sensors: [],
  observedAt: null,
  deviceLog: [],
  deviceLogReadAt: null,
  commandedAt: null,
  cancelRequest: null,
};
const shelf = (state: PowerShelf["state"], change: Partial<PowerShelf> = {}): PowerShelf => ({
  id: parsePowerShelfId("ps100rs1", "id"),
  version: 4,
  state,
  stateSince: NOW,
  basis: 1,
  stateVersion: 2,
  outcome: null,
  rackId: "rack-1",
  bmc: { mac: "02:00:5e:10:00:01", address: "127.1.0.1", port: 8443, scheme: "https", trust: "pin" },
  facts: unread,
  deletedAt: null,
  maintenanceRequest: null,
  expectedId: null,
  hasEvents: false,
  ...change,
});

let power: { [M in keyof PowerControl]: ReturnType<typeof vi.fn<PowerControl[M]>> };
let inspect: { [M in keyof Inventory]: ReturnType<typeof vi.fn<Inventory[M]>> };
let sensors: { [M in keyof Sensors]: ReturnType<typeof vi.fn<Sensors[M]>> };

beforeEach(() => {
  power = {
    readPower: vi.fn<PowerControl["readPower"]>(async () => "on"),
    setPower: vi.fn<PowerControl["setPower"]>(async () => ({ commanded: false })),
  };
  inspect = {
    identify: vi.fn<Inventory["identify"]>(async () => inventory.identity),
    readInventory: vi.fn<Inventory["readInventory"]>(async () => inventory),
  };
  sensors = {
    readHealth: vi.fn<Sensors["readHealth"]>(async () => ({
      status: "warning",
      readings: [{ name: "inlet", value: 21.5, unit: "Cel" }],
    })),
    readLog: vi.fn<Sensors["readLog"]>(async () => []),
  };
});

const context = (change: Partial<PowerShelfContext> & { can?: Partial<Capabilities> } = {}): PowerShelfContext => ({
  provider: { name: "fake", can: change.can ?? { power, inventory: inspect, sensors } },
  call,
  clock: { now: () => NOW, monotonic: () => 0 },
  target: async () => bmc,
  monitorEvery: seconds(30),
  ...change,
});

const unreachable = retryable("no answer from 127.1.0.1");

describe("fetching data", () => {
  const fetchData = (facts = unread, change = {}) =>
    powerShelfHandlers.fetching_data(shelf({ name: "fetching_data" }, { facts }), context(change));

  test("reports all that was read: identity, firmware, power supplies and power state", async () => {
    power.readPower.mockResolvedValue("off");
    expect(await fetchData()).toEqual({
      type: "happened",
      event: "data_fetched",
      facts: {
        serial: "SN1",
        vendor: "Lite-On",
        model: "PS-1",
        certificateFingerprint: "AB:CD",
        bmcFirmware: "1.2.3",
        capacityWatts: 33_000,
        voltage: 48,
        powerSupplies: inventory.powerSupplies,
        powerState: "off",
        observedAt: NOW.toISOString(),
      },
    });
    expect(inspect.readInventory).toHaveBeenCalledWith(bmc, call);
  });

  test("knows no fingerprint of a BMC that showed no certificate", async () => {
    const { certificateFingerprint: _, ...identity } = inventory.identity;
    inspect.readInventory.mockResolvedValue({ ...inventory, identity });
    expect(await fetchData()).toMatchObject({ facts: { certificateFingerprint: null } });
  });

  test("does not take in what has no power supplies", async () => {
    inspect.readInventory.mockResolvedValue({ ...inventory, powerSupplies: [] });
    await expect(fetchData()).rejects.toMatchObject({ code: "wrong_identity", message: /shows no power supplies/ });
  });

  test("accepts the shelf that was expected", async () => {
    expect(await fetchData({ ...unread, serial: "SN1" })).toMatchObject({ event: "data_fetched" });
  });

  test("takes nothing from a BMC that answers for another shelf, and tries again", async () => {
    const refused = fetchData({ ...unread, serial: "SN2" });
    await expect(refused).rejects.toThrow("answers for serial SN1, but this shelf is SN2: check the address");
    await expect(refused).rejects.toMatchObject({ disposition: "retry" });
  });

  test("passes on why the BMC could not be used", async () => {
    inspect.readInventory.mockRejectedValue(unreachable);
    await expect(fetchData()).rejects.toBe(unreachable);
  });

  test("fails for good on a provider that cannot inspect", async () => {
    await expect(fetchData(unread, { can: { power } })).rejects.toMatchObject({
      disposition: "fail",
      message: "provider fake cannot do: inventory",
    });
  });
});

const observed = {
  powerState: "on",
  health: "warning",
  sensors: [{ name: "inlet", value: 21.5, unit: "Cel" }],
  powerSupplies: inventory.powerSupplies,
  bmcFirmware: "1.2.3",
  capacityWatts: 33_000,
  voltage: 48,
  certificateFingerprint: "AB:CD", // the first one seen is pinned, also after an operator had it forgotten
  observedAt: NOW.toISOString(),
  deviceLog: [],
  deviceLogReadAt: NOW.toISOString(),
};

describe("configuring", () => {
  test("is done once the shelf was read with its credentials", async () => {
    expect(await powerShelfHandlers.configuring(shelf({ name: "configuring" }), context())).toEqual({
      type: "happened",
      event: "configured",
      facts: observed,
    });
  });

  test("is not done while the credentials are refused", async () => {
    const refused = forPerson("the BMC refuses user root");
    power.readPower.mockRejectedValue(refused);
    await expect(powerShelfHandlers.configuring(shelf({ name: "configuring" }), context())).rejects.toBe(refused);
  });
});

test("the first pass in ready does not ask again what the pass before has just read", async () => {
  const read = { ...unread, observedAt: new Date(NOW.getTime() - 100).toISOString() };
  const first = shelf({ name: "ready" }, { facts: read, stateSince: NOW });
  expect(await powerShelfHandlers.ready?.(first, context())).toEqual({ type: "nothing", after: 30_000 });
  expect(power.readPower).not.toHaveBeenCalled();

  const later = shelf({ name: "ready" }, { facts: read, stateSince: new Date(NOW.getTime() - 15_000) });
  await powerShelfHandlers.ready?.(later, context());
  expect(power.readPower).toHaveBeenCalled();
});

describe.each(["ready", "error"] as const)("monitoring in %s", (state) => {
  const monitor = (facts = unread) => {
    const handler = powerShelfHandlers[state];
    if (!handler) throw new Error(`${state} is not monitored`);
    return handler(shelf({ name: state }, { facts }), context());
  };

  test("notes what it sees and looks again in a while; nothing happens to the shelf", async () => {
    expect(await monitor()).toEqual({ type: "nothing", after: 30_000, facts: observed });
    expect(power.setPower).not.toHaveBeenCalled();
  });

  test("notes nothing of another shelf that answers in its place", async () => {
    await expect(monitor({ ...unread, serial: "SN2" })).rejects.toThrow(
      "answers for serial SN1, but this shelf is SN2",
    );
  });

  test("learns the voltage of a shelf that was off when it was found, and does not forget it when it is off again", async () => {
    const off = { ...inventory, voltage: null, capacityWatts: null };
    expect(await monitor({ ...unread, voltage: null })).toMatchObject({
      facts: { voltage: 48, capacityWatts: 33_000 },
    });
    inspect.readInventory.mockResolvedValue(off);
    expect(await monitor({ ...unread, voltage: 48, capacityWatts: 33_000 })).toMatchObject({
      facts: { voltage: 48, capacityWatts: 33_000 },
    });
  });

  test("takes no trembling of the voltage for news", async () => {
    expect(await monitor({ ...unread, voltage: 48.4 })).toMatchObject({ facts: { voltage: 48.4 } });
    expect(await monitor({ ...unread, voltage: 54 })).toMatchObject({ facts: { voltage: 48 } });
  });

  test("says why the shelf cannot be seen", async () => {
    sensors.readHealth.mockRejectedValue(unreachable);
    await expect(monitor()).rejects.toBe(unreachable);
  });
});

describe("the device's own log", () => {
  const at = new Date("2026-01-01T00:00:00Z");
  const entry = { id: "7", at, severity: "critical", message: `${"x".repeat(2_000)}` } as const;
  const monitor = (facts: Partial<PowerShelf["facts"]> = {}) =>
    powerShelfHandlers.configuring(shelf({ name: "configuring" }, { facts: { ...unread, ...facts } }), context());
  const read = (ago: number) => new Date(NOW.getTime() - ago).toISOString();

  test("is read with its latest entries, cut to a bearable length", async () => {
    sensors.readLog.mockResolvedValue([entry, { ...entry, id: "6", at: null, message: "old" }]);
    expect(await monitor()).toMatchObject({
      facts: {
        deviceLog: [
          { id: "7", at: at.toISOString(), severity: "critical", message: "x".repeat(1_000) },
          { id: "6", at: null, severity: "critical", message: "old" },
        ],
      },
    });
    expect(sensors.readLog).toHaveBeenCalledWith(bmc, call, { limit: 20 });
  });

  test("is not read at every pass, but at once when the health changed", async () => {
    await monitor({ health: "warning", deviceLogReadAt: read(minutes(4)) });
    expect(sensors.readLog).not.toHaveBeenCalled();
    await monitor({ health: "warning", deviceLogReadAt: read(minutes(5)) });
    expect(sensors.readLog).toHaveBeenCalledTimes(1);
    await monitor({ health: "ok", deviceLogReadAt: read(minutes(1)) });
    expect(sensors.readLog).toHaveBeenCalledTimes(2);
  });

  test("that cannot be read hides nothing else, but a lost lease is not its doing", async () => {
    sensors.readLog.mockRejectedValue(new DeviceFailure("protocol", "bmc", "no log here", { disposition: "fail" }));
    const outcome = await monitor();
    expect(outcome).toMatchObject({ facts: { powerState: "on" } });
    expect(outcome.facts).not.toHaveProperty("deviceLog");
    sensors.readLog.mockRejectedValue(unreachable);
    await expect(monitor()).rejects.toBe(unreachable);
  });
});

describe("maintenance", () => {
  const maintain = (operation: "power_on" | "power_off", change: Partial<PowerShelf> = {}) =>
    powerShelfHandlers.maintenance(shelf({ name: "maintenance", operation }, change), context());

  test.each([
    ["power_on", "on"],
    ["power_off", "off"],
  ] as const)("to %s sets the power, reads it back, and is complete when it is %s", async (operation, wanted) => {
    power.readPower.mockResolvedValue(wanted);
    expect(await maintain(operation)).toMatchObject({
      type: "happened",
      event: "operation_completed",
      facts: { powerState: wanted, observedAt: NOW.toISOString() },
    });
    expect(power.setPower).toHaveBeenCalledExactlyOnceWith(bmc, wanted, call, undefined);
    expect(power.setPower).toHaveBeenCalledBefore(power.readPower);
  });

  test("that was canceled ends without a word to the shelf; the cancel of another request changes nothing", async () => {
    const running = (requestId: string) =>
      powerShelfHandlers.maintenance(
        shelf(
          { name: "maintenance", operation: "power_off", request: { id: "r-1" } },
          { facts: { ...unread, cancelRequest: { requestId, by: "ann", at: NOW.toISOString() } } },
        ),
        context(),
      );
    expect(await running("r-1")).toEqual({
      type: "happened",
      event: "operation_canceled",
      message: "canceled by ann; a power_off that was already sent may still take effect",
    });
    expect(power.setPower).not.toHaveBeenCalled();
    power.readPower.mockResolvedValue("off");
    expect(await running("r-0")).toMatchObject({ event: "operation_completed" });
  });

  test("is complete although nothing else of the shelf can be read", async () => {
    power.readPower.mockResolvedValue("off");
    sensors.readHealth.mockRejectedValue(retryable("the sensors do not answer"));
    expect(await maintain("power_off")).toMatchObject({ event: "operation_completed", facts: { powerState: "off" } });
  });

  test.each<PowerState>(["on", "powering_off", "powering_on", "unknown"])(
    "is not complete while the shelf reports %s instead of off",
    async (seen) => {
      power.readPower.mockResolvedValue(seen);
      expect(await maintain("power_off")).toEqual({
        type: "waiting",
        reason: `shelf reports power ${seen}, wanted off`,
        after: 200,
        facts: { powerState: seen, observedAt: NOW.toISOString() },
        cause: {
          code: seen === "unknown" ? "meter_contradicts" : "no_effect",
          facts: { at: "bmc", progress: seen },
        },
      });
    },
  );

  test("does what was carried in, not what has been asked since", async () => {
    await maintain("power_off", {
      maintenanceRequest: { id: "newer", operation: "power_on", initiator: "bob", requestedAt: NOW },
    });
    expect(power.setPower.mock.calls.map(([, desired]) => desired)).toEqual(["off"]);
  });

  test("looks often at first and ever less often, up to every 10 s", async () => {
    const pauseAfter = async (waited: number) => {
      const outcome = await maintain("power_off", { stateSince: new Date(NOW.getTime() - waited) });
      return outcome.type === "waiting" ? outcome.after : undefined;
    };
    expect([await pauseAfter(0), await pauseAfter(400), await pauseAfter(8_000), await pauseAfter(minutes(3))]).toEqual(
      [200, 200, 2_000, 10_000],
    );
  });

  describe("that told the shelf", () => {
    const request = { id: "request-1" };
    const told = { operation: "power_off", requestId: "request-1", at: NOW.toISOString() } as const;
    const maintainFor = (carried: { id: string }, commandedAt: PowerShelf["facts"]["commandedAt"]) =>
      powerShelfHandlers.maintenance(
        shelf({ name: "maintenance", operation: "power_off", request: carried }, { facts: { ...unread, commandedAt } }),
        context(),
      );
    const handedIn = () => power.setPower.mock.calls.map(([, , , evidence]) => evidence);

    test("keeps when, and for which request", async () => {
      power.setPower.mockResolvedValue({ commanded: true });
      expect(await maintainFor(request, null)).toMatchObject({
        type: "waiting",
        facts: { powerState: "on", commandedAt: told },
      });
    });

    test("keeps it also when the shelf cannot be read afterwards", async () => {
      power.setPower.mockResolvedValue({ commanded: true });
      power.readPower.mockRejectedValue(unreachable);
      expect(await maintainFor(request, null)).toMatchObject({
        type: "waiting",
        reason: expect.stringContaining(unreachable.message),
        facts: { commandedAt: told },
      });
    });

    test("hands it in at the next pass, so that another replica does not repeat it", async () => {
      await maintainFor(request, told);
      expect(handedIn()).toEqual([{ at: NOW }]);
    });

    test("does not take the command of an earlier request for its own", async () => {
      await maintainFor({ id: "request-2" }, told);
      await maintainFor(request, { ...told, operation: "power_on" });
      expect(handedIn()).toEqual([undefined, undefined]);
    });
  });

  test("does not read back what the BMC refused", async () => {
    power.setPower.mockRejectedValue(final("the shelf refuses"));
    await expect(maintain("power_on")).rejects.toThrow("the shelf refuses");
    expect(power.readPower).not.toHaveBeenCalled();
  });
});

describe("deleting", () => {
  test("detaches the expected row in the same commit", async () => {
    const linked = shelf({ name: "deleting" }, { expectedId: "expected-1" });
    expect(await powerShelfHandlers.deleting(linked, context())).toEqual({
      type: "happened",
      event: "removed",
      effects: [{ type: "move", kind: "expected_power_shelf", id: "expected-1", cause: "power_shelf_deleted" }],
    });
  });

  test("of a shelf that nobody expects touches nothing else, and no device either", async () => {
    const target = vi.fn(async () => bmc);
    const outcome = await powerShelfHandlers.deleting(shelf({ name: "deleting" }), context({ target }));
    expect(outcome).toEqual({ type: "happened", event: "removed", effects: [] });
    expect(target).not.toHaveBeenCalled();
  });
});

test("no handler ever names a state: what it reports is an event, and no event is called like a state", async () => {
  const states = new Set(Object.keys(powerShelfLifecycle.states));
  const outcomes: Outcome[] = [
    await powerShelfHandlers.fetching_data(shelf({ name: "fetching_data" }), context()),
    await powerShelfHandlers.configuring(shelf({ name: "configuring" }), context()),
    await powerShelfHandlers.maintenance(shelf({ name: "maintenance", operation: "power_on" }), context()),
    await powerShelfHandlers.deleting(shelf({ name: "deleting" }), context()),
  ];
  for (const outcome of outcomes) {
    expect(outcome).not.toHaveProperty("to");
    expect(outcome).not.toHaveProperty("state");
    if (outcome.type !== "happened") throw new Error("each of these should have happened");
    expect(states).not.toContain(outcome.event);
  }
});

import { describe, expect, test } from "vitest";
import type { DeviceInventory } from "../../capabilities/inventory.ts";
import { follow } from "../../kernel/decide.ts";
import { parseSwitchId } from "../../kernel/ids.ts";
import { seconds } from "../../kernel/time/duration.ts";
import { deviceIdOf } from "../expected-device/explorer.ts";
import { exploredSwitch } from "../expected-switch/handlers.ts";
import { switchHandlers } from "./handlers.ts";
import { switchLifecycle } from "./lifecycle.ts";
import { nvosAddressOf, type Switch, type SwitchFacts } from "./switch.ts";

const NOW = new Date("2026-01-02T03:04:05.678Z");
const FACTS: SwitchFacts = {
  serial: "SN1",
  vendor: null,
  model: null,
  bmcFirmware: null,
  certificateFingerprint: null,
  powerState: null,
  health: null,
  sensors: [],
  observedAt: null,
  deviceLog: [],
  deviceLogReadAt: null,
  firmware: {},
  reportedNvosAddress: null,
  nvosCertificateFingerprint: null,
  slotNumber: null,
  trayIndex: null,
  isPrimary: false,
  fabric: null,
};
const device = (change: Partial<Switch> = {}): Switch => ({
  id: parseSwitchId("sw-1", "id"),
  version: 1,
  basis: 1,
  state: { name: "initializing" },
  stateSince: NOW,
  stateVersion: 1,
  outcome: null,
  rackId: "rack-1",
  bmc: { mac: "02:00:5e:10:00:01", address: "127.1.0.1", port: 443, scheme: "https", trust: "pin" },
  facts: FACTS,
  deletedAt: null,
  expectedId: "expected-1",
  labels: {},
  nvosMacs: ["02:00:5e:10:00:02"],
  givenNvosAddress: null,
  nvosMacTakenBy: null,
  enableNmxc: true,
  ...change,
});

const INVENTORY: DeviceInventory = {
  identity: { serial: "SN1", vendor: "NVIDIA", model: "GB200", certificateFingerprint: "AB:CD" },
  bmcFirmware: "1.2",
  powerSupplies: [],
  capacityWatts: null,
  voltage: null,
  place: { slot: 7, trayIndex: 2 },
  interfaces: [{ mac: "02:00:5E:10:00:02", address: "127.2.0.1" }],
};

const context = (inventory: Partial<DeviceInventory> = {}) => ({
  provider: {
    name: "fake",
    can: {
      inventory: {
        identify: async () => INVENTORY.identity,
        readInventory: async () => ({ ...INVENTORY, ...inventory }),
      },
    },
  },
  call: { signal: new AbortController().signal, mayTouchDevice: <T>(wanted: T) => wanted, subject: "sw-1" },
  clock: { now: () => NOW, monotonic: () => 0 },
  target: async () => ({
    address: "127.1.0.1",
    port: 443,
    scheme: "https" as const,
    username: "root",
    password: "not-shown",
    trust: { mode: "pin" as const },
  }),
  monitorEvery: seconds(60),
});

describe("initializing", () => {
  test("finds the operating system's interface, slot and tray index", async () => {
    expect(await switchHandlers.initializing(device(), context())).toMatchObject({
      event: "interface_associated",
      facts: { reportedNvosAddress: "127.2.0.1", slotNumber: 7, trayIndex: 2, bmcFirmware: "1.2" },
    });
  });

  test("waits while the BMC reports no such interface, and says what helps", async () => {
    const outcome = await switchHandlers.initializing(device(), context({ interfaces: [] }));
    expect(outcome).toMatchObject({ type: "waiting", reason: expect.stringContaining("set-nvos-address") });
  });

  test("takes the address of the expected switch and the index of a label where the BMC does not say; a label is no address", async () => {
    const labels = { nvos_address: "127.6.6.6", tray_index: "4" };
    const unset = await switchHandlers.initializing(device({ labels }), context({ interfaces: [] }));
    expect(unset).toMatchObject({ type: "waiting", facts: { reportedNvosAddress: null } });
    const outcome = await switchHandlers.initializing(
      device({ labels, givenNvosAddress: "127.9.9.9" }),
      context({ interfaces: [], place: { slot: null, trayIndex: null } }),
    );
    expect(outcome).toMatchObject({
      event: "interface_associated",
      facts: { reportedNvosAddress: null, trayIndex: 4 },
    });
  });

  test("remembers the address that the BMC reported, until the expected switch gives one", async () => {
    const facts = { ...FACTS, reportedNvosAddress: "127.2.0.1" };
    const seen = async (givenNvosAddress: string | null) => {
      const interfaces = [{ mac: "02:00:5e:10:00:02", address: null }];
      const { facts: after } = await switchHandlers.initializing(
        device({ facts, givenNvosAddress }),
        context({ interfaces }),
      );
      return nvosAddressOf({ facts: { ...facts, ...after }, givenNvosAddress });
    };
    expect(await seen(null)).toBe("127.2.0.1");
    expect(await seen("127.9.9.9")).toBe("127.9.9.9");
  });

  test.each([
    ["no expected switch", { expectedId: null }, "no expected switch is linked"],
    ["no NVOS MAC address", { nvosMacs: [] }, "has no nvos_mac_addresses"],
    ["an NVOS MAC address of another switch", { nvosMacTakenBy: "sw-2" }, "belongs to switch sw-2"],
  ])("ends in error with %s", async (_, change, message) => {
    const outcome = await switchHandlers.initializing(device(change), context());
    expect(outcome).toMatchObject({ event: "identity_wrong", message: expect.stringContaining(message) });
  });

  test("believes nothing of another switch", async () => {
    const other = { identity: { ...INVENTORY.identity, serial: "SN2" } };
    await expect(switchHandlers.initializing(device(), context(other))).rejects.toThrow("but this switch is SN1");
  });
});

test("a missing tray index is reported, and stops nothing", async () => {
  expect(await switchHandlers.bom_validating(device(), context())).toMatchObject({
    event: "bom_validated",
    message: expect.stringContaining("tray index"),
  });
});

test("after the firmware the fabric is awaited only where it is configured too", () => {
  const waiting = (awaitsFabric: boolean) =>
    device({
      state: { name: "reprovisioning", step: "waiting_for_rack_firmware_upgrade", rack: "rack-1", awaitsFabric },
    });
  const proven = (thing: Switch) => follow(switchLifecycle, thing, { owner: "other", name: "firmware_proven" });
  expect(proven(waiting(true))).toMatchObject({
    to: "reprovisioning",
    carried: { step: "waiting_for_nmxc_configure", rack: "rack-1", awaitsFabric: true },
  });
  expect(proven(waiting(false))).toMatchObject({ to: "ready" });
});

test("its id is that of the contract: NvLink, by the serial of its chassis", () => {
  const id = deviceIdOf(exploredSwitch, { serial: "SN1", vendor: "Lite-On", model: "PS-1" });
  expect(id).toBe("sw100nss3tnu65mgcq2e4v6rbgpq1a9rmf7eouaoq76dphmnvab8vnemc2g");
});

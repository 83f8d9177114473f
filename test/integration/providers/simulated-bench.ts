import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Simulator, startSimulator } from "../../../simulator/simulator.ts";
import type { BmcTarget } from "../../../src/capabilities/bmc-target.ts";
import type { DeviceBench, DeviceTrouble } from "../../../src/capabilities/conformance/device-bench.ts";
import type { SensorsBench } from "../../../src/capabilities/conformance/sensors.ts";
import { milliseconds } from "../../../src/kernel/time/duration.ts";
import {
  createRedfishShelfProvider,
  type RedfishShelfProvider,
  type RedfishShelfProviderOptions,
} from "../../../src/providers/redfish/shelf/redfish-shelf-provider.ts";
import {
  type BmcGateway,
  createBmcGateway,
  type GatewayOptions,
} from "../../../src/providers/transport/bmc-gateway.ts";

export interface SimulatedDevice {
  readonly id: string;
  readonly address: string;
  readonly port: number;
  readonly serial: string;
  readonly layout: "liteon" | "standard";
  readonly power: "on" | "off" | "powering_on" | "powering_off";
  readonly psus: readonly unknown[];
}
interface SimulatedDeviceDetail extends SimulatedDevice {
  readonly effects: Readonly<Record<string, number>>;
  readonly requests: number;
}

export interface SimulatedSite {
  readonly simulator: Simulator;
  devices(layout: SimulatedDevice["layout"]): Promise<readonly SimulatedDevice[]>;
  device(id: string): Promise<SimulatedDeviceDetail>;
  target(device: SimulatedDevice): Promise<BmcTarget>;
  addFault(rule: Readonly<Record<string, unknown>>): Promise<void>;
  clearFaults(): Promise<void>;
  switchAtRack(id: string, power: "on" | "off"): Promise<void>;
  stop(): Promise<void>;
}

/** Two racks on loopback, one of each layout, in a directory of their own. */
export async function startSite(speed: number): Promise<SimulatedSite> {
  const dataDir = await mkdtemp(join(tmpdir(), "millwright-sim-"));
  const simulator = await startSimulator({ dataDir, speed, seed: 7, site: "racks=2" });
  const ask = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const request = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const response = await fetch(`${simulator.controlUrl}${path}`, request);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  };
  const inventory = await ask<readonly Readonly<Record<string, string>>[]>("GET", "/inventory");
  return {
    simulator,
    devices: async (layout) =>
      (await ask<readonly SimulatedDevice[]>("GET", "/devices")).filter((device) => device.layout === layout),
    device: (id) => ask("GET", `/devices/${id}`),
    async target({ address, port }) {
      const row = inventory.find(({ bmc_ip_address }) => bmc_ip_address === `${address}:${port}`);
      return {
        address,
        port,
        scheme: "https",
        username: row?.bmc_username ?? "",
        password: row?.bmc_password ?? "",
        trust: { mode: "pin" },
      };
    },
    addFault: (rule) => ask("POST", "/faults", rule),
    clearFaults: () => ask("DELETE", "/faults"),
    switchAtRack: (id, power) => ask("POST", `/devices/${id}/power`, { power }),
    async stop() {
      await simulator.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

export interface Reach {
  readonly gateway: BmcGateway;
  readonly provider: RedfishShelfProvider;
  close(): Promise<void>;
}

/** A provider with its gateway, quick enough for tests. */
export function reach(
  options: { gateway?: GatewayOptions; provider?: Partial<RedfishShelfProviderOptions> } = {},
): Reach {
  const gateway = createBmcGateway({ backOff: milliseconds(5), openFor: milliseconds(100), ...options.gateway });
  const provider = createRedfishShelfProvider({ gateway, ...options.provider });
  return {
    gateway,
    provider,
    async close() {
      await provider.close();
      gateway.close();
    },
  };
}

const FAULTS = {
  cuts_connections: { type: "drop" },
  hangs: { type: "hang" },
  is_overloaded: { type: "status", status: 503 },
  writes_garbage: { type: "garbage" },
  rejects_credentials: { type: "wrong_credentials" },
  lies_about_accepting: { type: "lie_accept" },
  lies_about_power: { type: "lie_state" },
  talks_nonsense: { type: "status", status: 200, body: { message: "It works!" } },
  forbids: { type: "status", status: 403 },
} as const satisfies Partial<Record<DeviceTrouble, object>>;

/** What the simulator can make of a shelf's BMC. */
export const SHELF_TROUBLES = Object.keys(FAULTS) as DeviceTrouble[];

export async function benchFor(
  site: SimulatedSite,
  device: SimulatedDevice,
  { provider }: Reach,
): Promise<DeviceBench & SensorsBench> {
  await site.clearFaults();
  await site.switchAtRack(device.id, "on");
  const start = await site.device(device.id);
  const commands = ({ effects }: SimulatedDeviceDetail) =>
    (effects.power_on_commands ?? 0) + (effects.power_off_commands ?? 0) + (effects.power_cycle_commands ?? 0);
  return {
    provider,
    target: await site.target(device),
    serial: device.serial,
    powerSupplies: device.psus.length,
    cannot: [],
    realPower: async () => (await site.device(device.id)).power,
    switchAtRack: (power) => site.switchAtRack(device.id, power),
    commandsAccepted: async () => commands(await site.device(device.id)) - commands(start),
    requestsReceived: async () => (await site.device(device.id)).requests - start.requests,
    cause: (trouble) => site.addFault({ device: device.id, fault: FAULTS[trouble as keyof typeof FAULTS] }),
    putRight: () => site.clearFaults(),
  };
}

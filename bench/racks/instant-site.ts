import type { MachineSpec } from "../../simulator/devices/machine-spec.ts";
import type { PowerShelfSpec } from "../../simulator/devices/power-shelf.ts";
import type { SwitchSpec } from "../../simulator/devices/switch.ts";
import type { Site } from "../../simulator/site.ts";
import type { CallContext } from "../../src/capabilities/call.ts";
import type { Capabilities, Capability, Provider } from "../../src/capabilities/provider.ts";
import type { FabricStatus } from "../../src/capabilities/rack/fabric.ts";
import { milliseconds } from "../../src/kernel/time/duration.ts";
import type { EngineHardware } from "../../src/wiring/engine.ts";
import { bmcOf, type Commands, type Reach, reachOf } from "./instant-devices.ts";

/** All devices of a site, in this process, with as much to tell as real ones; what is left to measure is Millwright. */
export function createInstantSite(site: Site, commands: Commands): EngineHardware {
  const machines = machineProvider(reachOf(site.machines), commands);
  const can = machines.can;
  return {
    racks: {
      tools: {
        provider: shelfProvider(reachOf(site.shelves), commands),
        switches: switchProvider(reachOf(site.switches), commands),
        fabric: fabricOf(site.switches, commands),
      },
      async close() {},
    },
    machines: {
      providers: ["datacenter"],
      providerOf: () => machines,
      takesSeeds: () => true,
      capabilitiesOf: () => new Set(Object.keys(can) as Capability[]),
      async close() {},
    },
  };
}

const identityOf = ({ serial, vendor, model }: MachineSpec | PowerShelfSpec | SwitchSpec) => ({
  serial,
  vendor,
  model,
});

const HEALTHY: Capabilities["sensors"] = {
  readHealth: async ({ address }) => ({
    status: "ok",
    readings: [
      { name: `inlet of ${address}`, value: 24.5, unit: "Cel" },
      { name: "output power", value: 12_400, unit: "W" },
      { name: "output voltage", value: 50.8, unit: "V" },
      { name: "fan 1", value: 8_200, unit: "RPM" },
    ],
  }),
  readLog: async () => [],
};

function shelfProvider(reach: Reach<PowerShelfSpec>, commands: Commands): Provider {
  return {
    name: "instant shelves",
    can: {
      ...bmcOf(reach, commands),
      sensors: HEALTHY,
      inventory: {
        identify: async (target, call) => identityOf(reach(target, call).spec),
        async readInventory(target, call) {
          const { spec, versions, power } = reach(target, call);
          return {
            identity: identityOf(spec),
            bmcFirmware: versions.get("pmc") ?? null,
            capacityWatts: spec.capacityWatts,
            voltage: 50,
            powerSupplies: spec.supplies.map(({ name, serial }) => ({
              name,
              serial,
              firmware: versions.get("psu") ?? null,
              on: power === "on",
              health: "ok" as const,
            })),
          };
        },
      },
    },
  };
}

function switchProvider(reach: Reach<SwitchSpec>, commands: Commands): Provider {
  return {
    name: "instant switches",
    can: {
      ...bmcOf(reach, commands),
      sensors: HEALTHY,
      inventory: {
        identify: async (target, call) => identityOf(reach(target, call).spec),
        async readInventory(target, call) {
          const { spec, versions } = reach(target, call);
          return {
            identity: identityOf(spec),
            bmcFirmware: versions.get("bmc") ?? null,
            capacityWatts: null,
            voltage: null,
            powerSupplies: [],
            place: { slot: spec.slot, trayIndex: spec.trayIndex },
            interfaces: [{ mac: spec.nvos.mac, address: spec.nvos.address }],
          };
        },
      },
    },
  };
}

const ON_TIME = milliseconds(1_000);

/** The operating systems of the switches: a rack has a fabric once it was configured on one of them. */
function fabricOf(switches: readonly SwitchSpec[], commands: Commands): Capabilities["fabric"] {
  const rackAt = new Map(switches.map(({ nvos, rack, id }) => [nvos.address, { rack, id }]));
  const configured = new Set<string>();
  const find = (address: string, call: CallContext) => {
    call.mayTouchDevice(ON_TIME);
    const found = rackAt.get(address);
    if (found === undefined) throw new Error(`there is no switch at ${address}`);
    return found;
  };
  return {
    async configure({ address }, _topology, call) {
      const { rack, id } = find(address, call);
      commands.onCommand(id, "fabric");
      configured.add(rack);
      return { job: null, isStarted: true };
    },
    listJobs: async () => [],
    async readStatus({ address }, call): Promise<FabricStatus> {
      const isUp = configured.has(find(address, call).rack);
      return {
        state: isUp ? "ok" : "not_ok",
        additionInfo: isUp ? "CONTROL_PLANE_STATE_CONFIGURED" : "CONTROL_PLANE_STATE_UNCONFIGURED",
        reason: null,
        error: null,
      };
    },
  };
}

function machineProvider(reach: Reach<MachineSpec>, commands: Commands): Provider {
  const system: Capabilities["system"] = {
    async identify(target, call) {
      const { spec } = reach(target, call);
      return { ...identityOf(spec), systemUuid: spec.systemUuid, macs: spec.macs };
    },
    readBoot: async () => ({ lastReset: null, progress: "running" }),
    async readFirmware(target, call) {
      return [...reach(target, call).versions].map(([name, version]) => ({ name, version }));
    },
  };
  return {
    name: "instant machines",
    can: {
      ...bmcOf(reach, commands),
      system,
      vitals: {
        async readVitals(target, call) {
          const { spec, power } = reach(target, call);
          return { serial: spec.serial, systemUuid: spec.systemUuid, power, health: "ok", ailments: [] };
        },
      },
      exec: {
        run: async () => ({ code: 0, signal: null, output: "" }),
        readHostKey: async ({ address }) => `ssh-ed25519 ${Buffer.from(address).toString("base64")}`,
        readFile: async () => ({ text: undefined, hostKey: "ssh-ed25519 instant" }),
      },
      nodes: { listNodes: async () => [], listWorkloads: async () => [], listGoing: async () => [] },
    },
  };
}

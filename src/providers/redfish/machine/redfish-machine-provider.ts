import type { Capabilities, Provider } from "../../../capabilities/provider.ts";
import { type Clock, systemClock } from "../../../kernel/time/clock.ts";
import { createRedfishClient, type RedfishClientOptions } from "../client.ts";
import { createDeviceEvents } from "../events/device-events.ts";
import { createBmcManager } from "../firmware/bmc-manager.ts";
import { createFirmwareUpdate } from "../firmware/firmware-update.ts";
import { createDeviceTasks } from "../firmware/tasks.ts";
import { createSensors } from "../shelf/sensors.ts";
import { createMachineBoot } from "./boot.ts";
import { createComputerSystem } from "./computer-system.ts";
import { createMachineImaging } from "./imaging.ts";
import { createMachineLocator } from "./locator.ts";
import { createMachines } from "./machine.ts";
import { createMachinePower, type MachinePowerOptions } from "./power.ts";
import { createMachineChassis, createMachineSensors } from "./sensors.ts";
import { createMachineVitals } from "./vitals.ts";

export interface RedfishMachineProviderOptions
  extends RedfishClientOptions,
    Partial<Omit<MachinePowerOptions, "clock">> {
  readonly clock?: Clock;
}

const REDFISH_MACHINE_CAPABILITIES = [
  "power",
  "reset",
  "boot",
  "imaging",
  "system",
  "locator",
  "sensors",
  "vitals",
  "firmware",
  "tasks",
  "manager",
  "events",
] as const;
type RedfishMachineCapabilities = Pick<Capabilities, (typeof REDFISH_MACHINE_CAPABILITIES)[number]>;

export interface RedfishMachineProvider extends Provider {
  readonly can: RedfishMachineCapabilities;
  /** Signs out everywhere and drops the connections. Before the gateway is closed. */
  close(): Promise<void>;
}

/** Machines over Redfish: one computer system behind each BMC. */
export function createRedfishMachineProvider(options: RedfishMachineProviderOptions): RedfishMachineProvider {
  const client = createRedfishClient(options);
  const machines = createMachines(client);
  const { clock = systemClock } = options;
  const power = createMachinePower(machines, { ...options, clock });
  return {
    name: "redfish",
    can: {
      power,
      reset: power,
      boot: createMachineBoot(machines),
      imaging: createMachineImaging(machines, power),
      system: createComputerSystem(machines),
      locator: createMachineLocator(machines),
      sensors: createMachineSensors(machines, createSensors(createMachineChassis(machines, client))),
      vitals: createMachineVitals(machines, clock),
      firmware: createFirmwareUpdate(client),
      tasks: createDeviceTasks(client),
      manager: createBmcManager(client),
      events: createDeviceEvents(client),
    },
    close: () => client.close(),
  };
}

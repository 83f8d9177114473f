import type { Capabilities, Provider } from "../../capabilities/provider.ts";
import { type Clock, systemClock } from "../../kernel/clock.ts";
import { createRedfishClient, type RedfishClientOptions } from "./client.ts";
import { createMachines } from "./machine.ts";
import { createMachineBoot } from "./machine-boot.ts";
import { createMachineImaging } from "./machine-imaging.ts";
import { createMachineInspect } from "./machine-inspect.ts";
import { createMachineLocator } from "./machine-locator.ts";
import { createMachinePower, type MachinePowerOptions } from "./machine-power.ts";
import { createMachineSensors } from "./machine-sensors.ts";
import { createMachineVitals } from "./machine-vitals.ts";
import { createSensors } from "./sensors.ts";
import { createShelves } from "./shelf.ts";

export interface RedfishMachineProviderOptions
  extends RedfishClientOptions,
    Partial<Omit<MachinePowerOptions, "clock">> {
  readonly clock?: Clock;
}

export const REDFISH_MACHINE_CAPABILITIES = [
  "power",
  "reset",
  "boot",
  "imaging",
  "machine",
  "locator",
  "sensors",
  "vitals",
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
  const power = createMachinePower(machines, { ...options, clock: options.clock ?? systemClock });
  return {
    name: "redfish",
    can: {
      power,
      reset: power,
      boot: createMachineBoot(machines),
      imaging: createMachineImaging(machines, power),
      machine: createMachineInspect(machines),
      locator: createMachineLocator(machines),
      sensors: createMachineSensors(machines, createSensors(createShelves(client))),
      vitals: createMachineVitals(machines),
    },
    close: () => client.close(),
  };
}

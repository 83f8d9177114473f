import type { Capabilities, Provider } from "../../../capabilities/provider.ts";
import { type Clock, systemClock } from "../../../kernel/time/clock.ts";
import { createRedfishClient, type RedfishClientOptions } from "../client.ts";
import { createBmcManager } from "../firmware/bmc-manager.ts";
import { createFirmwareUpdate } from "../firmware/firmware-update.ts";
import { createDeviceTasks } from "../firmware/tasks.ts";
import { createSensors } from "../shelf/sensors.ts";
import { createSwitchInventory } from "./inventory.ts";
import { createSwitchPower, type SwitchPowerOptions } from "./power.ts";
import { createSwitches } from "./switch.ts";

export interface RedfishSwitchProviderOptions extends RedfishClientOptions, Partial<Omit<SwitchPowerOptions, "clock">> {
  readonly clock?: Clock;
}

export interface RedfishSwitchProvider extends Provider {
  readonly can: Pick<Capabilities, "power" | "reset" | "inventory" | "sensors" | "firmware" | "tasks" | "manager">;
  /** Signs out everywhere and drops the connections. Before the gateway is closed. */
  close(): Promise<void>;
}

/** Switches over Redfish. Their operating system is another matter (`providers/nvue`). */
export function createRedfishSwitchProvider(options: RedfishSwitchProviderOptions): RedfishSwitchProvider {
  const client = createRedfishClient(options);
  const switches = createSwitches(client);
  const power = createSwitchPower(switches, { ...options, clock: options.clock ?? systemClock });
  return {
    name: "redfish",
    can: {
      power,
      reset: power,
      inventory: createSwitchInventory(switches),
      sensors: createSensors(switches),
      firmware: createFirmwareUpdate(client),
      tasks: createDeviceTasks(client),
      manager: createBmcManager(client),
    },
    close: () => client.close(),
  };
}

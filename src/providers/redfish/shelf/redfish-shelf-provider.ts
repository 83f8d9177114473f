import type { Capabilities, Provider } from "../../../capabilities/provider.ts";
import { type Clock, systemClock } from "../../../kernel/time/clock.ts";
import { createRedfishClient, type RedfishClientOptions } from "../client.ts";
import { createDeviceEvents } from "../events/device-events.ts";
import { createBmcManager } from "../firmware/bmc-manager.ts";
import { createFirmwareUpdate } from "../firmware/firmware-update.ts";
import { createDeviceTasks } from "../firmware/tasks.ts";
import { createInventory } from "./inventory.ts";
import { createPowerControl, type PowerControlOptions } from "./power.ts";
import { createSensors } from "./sensors.ts";
import { createShelves } from "./shelf.ts";

export interface RedfishShelfProviderOptions extends RedfishClientOptions, Partial<Omit<PowerControlOptions, "clock">> {
  readonly clock?: Clock;
}

export interface RedfishShelfProvider extends Provider {
  readonly can: Pick<Capabilities, "power" | "inventory" | "sensors" | "firmware" | "tasks" | "manager" | "events">;
  /** Signs out everywhere and drops the connections. Before the gateway is closed. */
  close(): Promise<void>;
}

/** Power shelves over Redfish, in the layouts of `layouts.ts`. */
export function createRedfishShelfProvider(options: RedfishShelfProviderOptions): RedfishShelfProvider {
  const client = createRedfishClient(options);
  const shelves = createShelves(client);
  return {
    name: "redfish",
    can: {
      power: createPowerControl(shelves, { ...options, clock: options.clock ?? systemClock }),
      inventory: createInventory(shelves),
      sensors: createSensors(shelves),
      firmware: createFirmwareUpdate(client),
      tasks: createDeviceTasks(client),
      manager: createBmcManager(client),
      events: createDeviceEvents(client),
    },
    close: () => client.close(),
  };
}

import type { Capabilities, Provider } from "../../../capabilities/provider.ts";
import { type Clock, systemClock } from "../../../kernel/time/clock.ts";
import { createRedfishClient, type RedfishClientOptions } from "../client.ts";
import { createInspect } from "./inspect.ts";
import { createPowerControl, type PowerControlOptions } from "./power.ts";
import { createSensors } from "./sensors.ts";
import { createShelves } from "./shelf.ts";

export interface RedfishProviderOptions extends RedfishClientOptions, Partial<Omit<PowerControlOptions, "clock">> {
  readonly clock?: Clock;
}

export interface RedfishProvider extends Provider {
  readonly can: Pick<Capabilities, "power" | "inspect" | "sensors">;
  /** Signs out everywhere and drops the connections. Before the gateway is closed. */
  close(): Promise<void>;
}

/** Power shelves over Redfish, in the layouts of `layouts.ts`. */
export function createRedfishProvider(options: RedfishProviderOptions): RedfishProvider {
  const client = createRedfishClient(options);
  const shelves = createShelves(client);
  return {
    name: "redfish",
    can: {
      power: createPowerControl(shelves, { ...options, clock: options.clock ?? systemClock }),
      inspect: createInspect(shelves),
      sensors: createSensors(shelves),
    },
    close: () => client.close(),
  };
}

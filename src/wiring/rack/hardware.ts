import { createNvueFabric } from "../../providers/nvue/nvue-fabric.ts";
import type { RedfishClientOptions } from "../../providers/redfish/client.ts";
import { createRedfishShelfProvider } from "../../providers/redfish/shelf/redfish-shelf-provider.ts";
import { createRedfishSwitchProvider } from "../../providers/redfish/switch/redfish-switch-provider.ts";
import type { HandlerTools } from "../things/thing.ts";

export interface RackHardware {
  readonly tools: Pick<HandlerTools, "provider" | "switches" | "fabric">;
  /** Signs out everywhere and drops the connections. Before the gateway is closed. */
  close(): Promise<void>;
}

/** The ways to reach the devices of racks that are no machines: shelves, switches, and the fabric that switches are together. */
export function wireRackHardware(options: RedfishClientOptions): RackHardware {
  const shelves = createRedfishShelfProvider(options);
  const switches = createRedfishSwitchProvider(options);
  const fabric = createNvueFabric(options);
  return {
    tools: { provider: shelves, switches, fabric },
    async close() {
      await shelves.close();
      await switches.close();
      fabric.close();
    },
  };
}

import type { Config } from "../../config.ts";
import { createNvueFabric } from "../../providers/nvue/nvue-fabric.ts";
import type { RedfishClientOptions } from "../../providers/redfish/client.ts";
import { createRedfishShelfProvider } from "../../providers/redfish/shelf/redfish-shelf-provider.ts";
import { createRedfishSwitchProvider } from "../../providers/redfish/switch/redfish-switch-provider.ts";
import type { HandlerTools } from "../things/thing.ts";
import { wireRackManager } from "./rack-manager.ts";

export interface RackHardware {
  readonly tools: Pick<HandlerTools, "provider" | "switches" | "fabric" | "rackManager">;
  /** Signs out everywhere and drops the connections. Before the gateway is closed. */
  close(): Promise<void>;
}

/**
 * The ways to reach the devices of racks that are no machines: shelves, switches, and the fabric that switches are together; and the
 * rack manager, where there is one.
 */
export function wireRackHardware(options: RedfishClientOptions, config: Pick<Config, "rackManager">): RackHardware {
  const shelves = createRedfishShelfProvider(options);
  const switches = createRedfishSwitchProvider(options);
  const fabric = createNvueFabric(options);
  const rackManager = wireRackManager(config);
  return {
    tools: { provider: shelves, switches, fabric, ...(rackManager && { rackManager }) },
    async close() {
      await shelves.close();
      await switches.close();
      fabric.close();
      rackManager?.close();
    },
  };
}

import { seconds } from "../../../src/kernel/time/duration.ts";
import type { RackLimits } from "../../../src/lifecycles/rack/plan-work.ts";
import { USUAL_LIMITS } from "../../../src/lifecycles/rack/usual-limits.ts";
import { createRackManager } from "../../../src/providers/rack-manager/rack-manager.ts";
import { createRedfishSwitchProvider } from "../../../src/providers/redfish/switch/redfish-switch-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { type RunSurface, startRunSurface } from "../run-bench.ts";
import { type ManagedRacks, managedRacks } from "./managed-racks.ts";
import { type Api, StandInRackManager } from "./stand-in-rack-manager.ts";

export interface ManagedBench extends RunSurface, ManagedRacks {
  readonly standIn: StandInRackManager;
  /** What racks that begin from now on keep to. */
  readonly limits: { -readonly [name in keyof RackLimits]: RackLimits[name] };
  close(): Promise<void>;
}

/** Racks whose devices are BMCs of the test's own, below a rack manager of the test's own. */
export async function startManagedBench(api: Api): Promise<ManagedBench> {
  const standIn = await StandInRackManager.start(api);
  const rackManager = createRackManager({ url: standIn.url, api });
  const gateway = createBmcGateway({});
  const switches = createRedfishSwitchProvider({ gateway });
  const limits: ManagedBench["limits"] = { ...USUAL_LIMITS, hasRackManager: true, flashDeadline: seconds(600) };
  const surface = await startRunSurface({ controller: true, tools: { rackManager, rackLimits: limits, switches } });
  const managed = await managedRacks(surface.deps, standIn);
  return {
    ...surface,
    ...managed,
    ...{ standIn, limits },
    async close() {
      await surface.close();
      rackManager.close();
      await switches.close();
      gateway.close();
      await standIn.close();
      await managed.close();
    },
  };
}

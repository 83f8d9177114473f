import type { ConnectRouter } from "@connectrpc/connect";
import { Forge } from "../../../contract/forge/forge_pb.js";
import { HistoryService } from "../../../contract/millwright/v1/history_pb.js";
import { LifecycleService } from "../../../contract/millwright/v1/lifecycle_pb.js";
import { PowerShelfService } from "../../../contract/millwright/v1/power_shelf_pb.js";
import { SystemService } from "../../../contract/millwright/v1/system_pb.js";
import { TokenService } from "../../../contract/millwright/v1/token_pb.js";
import { WatchService } from "../../../contract/millwright/v1/watch_pb.js";
import type { ServiceDeps } from "../../services/deps.ts";
import type { SystemInfo } from "../../services/system.ts";
import type { EventSource } from "../../services/watch.ts";
import { forgeExpectedPowerShelves } from "./forge-expected-power-shelves.ts";
import { forgePowerShelves } from "./forge-power-shelves.ts";
import { history } from "./history.ts";
import { lifecycles } from "./lifecycles.ts";
import { powerShelves } from "./power-shelves.ts";
import { serve } from "./serve.ts";
import { system } from "./system.ts";
import { tokens } from "./tokens.ts";
import { watch } from "./watch.ts";

export interface RouteDeps {
  readonly services: ServiceDeps;
  readonly events: EventSource;
  readonly system: SystemInfo;
  readonly onTokenRevoked: (id: string) => void;
}

/** Every service of the contracts but health and reflection, which know nothing of ours. */
export function registerRoutes(router: ConnectRouter, deps: RouteDeps): void {
  const { services } = deps;
  serve(router, Forge, { ...forgePowerShelves(services), ...forgeExpectedPowerShelves(services) });
  serve(router, PowerShelfService, powerShelves(services));
  serve(router, LifecycleService, lifecycles(services));
  serve(router, HistoryService, history(services));
  serve(router, WatchService, watch(services, deps.events));
  serve(router, TokenService, tokens(services, deps.onTokenRevoked));
  serve(router, SystemService, system(services, deps.system));
}

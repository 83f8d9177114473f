import type { ConnectRouter } from "@connectrpc/connect";
import { MachineService, PlanService, RunService } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { Forge } from "../../../contract/forge/forge_pb.js";
import { ClusterService, ImageService } from "../../../contract/millwright/v1/cluster_pb.js";
import { ExplainService } from "../../../contract/millwright/v1/explain_pb.js";
import { HistoryService } from "../../../contract/millwright/v1/history_pb.js";
import { LifecycleService } from "../../../contract/millwright/v1/lifecycle_pb.js";
import { MachineLifecycleService } from "../../../contract/millwright/v1/machine_pb.js";
import { PlanCatalogService } from "../../../contract/millwright/v1/plan_pb.js";
import { PowerShelfService } from "../../../contract/millwright/v1/power_shelf_pb.js";
import { RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
import { ScriptService } from "../../../contract/millwright/v1/script_pb.js";
import { SystemService } from "../../../contract/millwright/v1/system_pb.js";
import { TokenService } from "../../../contract/millwright/v1/token_pb.js";
import { WatchService } from "../../../contract/millwright/v1/watch_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import type { RunDeps } from "../../services/run/runs.ts";
import type { SystemInfo } from "../../services/system/system.ts";
import type { EventSource } from "../../services/system/watch.ts";
import { machineLifecycle, machines } from "../baremetal/machines.ts";
import { planCatalog, plans } from "../baremetal/plans.ts";
import { runs } from "../baremetal/runs.ts";
import { forgeExpectedPowerShelves } from "../forge/expected-power-shelves.ts";
import { forgePowerShelves } from "../forge/power-shelves.ts";
import { clusters, images } from "../millwright/catalogs.ts";
import { explain } from "../millwright/explain.ts";
import { history } from "../millwright/history.ts";
import { lifecycles } from "../millwright/lifecycles.ts";
import { powerShelves } from "../millwright/power-shelves.ts";
import { runActions } from "../millwright/run-actions.ts";
import { scripts } from "../millwright/scripts.ts";
import { system } from "../millwright/system.ts";
import { tokens } from "../millwright/tokens.ts";
import { watch } from "../millwright/watch.ts";
import { serve } from "./serve.ts";

export interface RouteDeps {
  readonly services: ServiceDeps;
  /** What runs can do; without it there are none. */
  readonly runs?: Omit<RunDeps, keyof ServiceDeps>;
  readonly events: EventSource;
  readonly system: SystemInfo;
  readonly onTokenRevoked: (id: string) => void;
}

/** Every service of the contracts but health and reflection, which know nothing of ours. */
export function registerRoutes(router: ConnectRouter, deps: RouteDeps): void {
  const { services } = deps;
  serve(router, Forge, { ...forgePowerShelves(services), ...forgeExpectedPowerShelves(services) });
  serve(router, PowerShelfService, powerShelves(services));
  serve(router, MachineService, machines(services));
  serve(router, MachineLifecycleService, machineLifecycle(services));
  serve(router, PlanService, plans(services));
  serve(router, PlanCatalogService, planCatalog(services));
  if (deps.runs) {
    const runDeps = { ...services, ...deps.runs };
    serve(router, RunService, runs(runDeps, deps.events));
    serve(router, RunActionsService, runActions(runDeps));
    serve(router, ScriptService, scripts(runDeps));
  }
  serve(router, ClusterService, clusters(services));
  serve(router, ImageService, images(services));
  serve(router, LifecycleService, lifecycles(services));
  serve(router, ExplainService, explain(services));
  serve(router, HistoryService, history(services));
  serve(router, WatchService, watch(services, deps.events));
  serve(router, TokenService, tokens(services, deps.onTokenRevoked));
  serve(router, SystemService, system(services, deps.system));
}

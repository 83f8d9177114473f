import { type BootRouteDeps, bootRoutes } from "./boot.ts";
import { groupRoutes } from "./groups.ts";
import { type NodeHistoryDeps, nodeHistoryRoutes } from "./node-history.ts";
import { nodeStateRoutes } from "./node-states.ts";
import { nodeRoutes } from "./nodes.ts";
import { type ReportRouteDeps, reportRoutes } from "./reports.ts";
import type { AnyRoute } from "./route.ts";
import { workflowRoutes } from "./workflows.ts";

export interface InstallRouteDeps extends NodeHistoryDeps, ReportRouteDeps, BootRouteDeps {}

/** Network installs: nodes, their boots and reports, groups and workflows. */
export const installRoutes = (deps: InstallRouteDeps): AnyRoute[] => [
  ...nodeRoutes(deps),
  ...nodeStateRoutes(deps),
  ...nodeHistoryRoutes(deps),
  ...reportRoutes(deps),
  ...bootRoutes(deps),
  ...groupRoutes(deps),
  ...workflowRoutes(deps),
];

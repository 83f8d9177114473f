import type { ServiceDeps } from "../../../services/call/deps.ts";
import type { RunDeps } from "../../../services/run/deps.ts";
import type { AnyRoute } from "../route.ts";
import { profileRoutes } from "./profiles.ts";
import { siteRoutes } from "./sites.ts";

export interface FleetRouteDeps {
  readonly services: ServiceDeps;
  /** What runs can do. Absent: the server has none. */
  readonly runs?: Omit<RunDeps, keyof ServiceDeps>;
}

/** GPU nodes over MAAS. */
export const fleetRoutes = (deps: FleetRouteDeps): AnyRoute[] => [...siteRoutes(deps), ...profileRoutes(deps)];

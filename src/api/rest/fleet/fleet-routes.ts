import type { ServiceDeps } from "../../../services/call/deps.ts";
import type { AnyRoute } from "../route.ts";
import { profileRoutes } from "./profiles.ts";
import { siteRoutes } from "./sites.ts";

export interface FleetRouteDeps {
  readonly services: ServiceDeps;
}

/** GPU nodes over MAAS. */
export const fleetRoutes = (deps: FleetRouteDeps): AnyRoute[] => [...siteRoutes(deps), ...profileRoutes(deps)];

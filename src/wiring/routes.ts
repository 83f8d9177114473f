import { auditRoutes } from "../api/rest/audit/refused-calls.ts";
import { fleetRoutes } from "../api/rest/fleet/fleet-routes.ts";
import type { AnyRoute } from "../api/rest/route.ts";
import { type Router, serveParts } from "../api/transport/service-parts.ts";
import { type SharedServiceDeps, sharedServices } from "./shared-services.ts";
import { accessOf, allThings, explainersOf, listingsOf } from "./things/all-things.ts";
import type { RouteDeps, ThingParts } from "./things/thing.ts";

/** Every service of the contracts but health and reflection, which know nothing of ours. */
export function registerRoutes(
  router: Router,
  deps: Omit<SharedServiceDeps, "explainers" | "access" | "listings">,
  things: readonly ThingParts[] = allThings,
): void {
  serveParts(router, [
    ...things.flatMap(({ methods }) => methods?.(deps) ?? []),
    ...sharedServices({
      ...deps,
      explainers: explainersOf(things),
      listings: listingsOf(things),
      access: accessOf(things),
    }),
  ]);
}

/** The routes of `/api/v1`: those that the things bring, and those that belong to no thing. */
export const restRoutes = (deps: RouteDeps, things: readonly ThingParts[] = allThings): AnyRoute[] => [
  ...things.flatMap(({ routes }) => routes?.(deps) ?? []),
  ...fleetRoutes(deps),
  ...auditRoutes(deps),
];

import { FleetAllocationService } from "../../../contract/millwright/v1/fleet_allocation_pb.js";
import { fleetAllocations } from "../../api/millwright/fleet/allocations.ts";
import { allocationRoutes } from "../../api/rest/fleet/allocations.ts";
import { roceRoutes } from "../../api/rest/fleet/roce.ts";
import { partOf } from "../../api/transport/service-parts.ts";
import type { FleetAllocation } from "../../lifecycles/fleet-allocation/fleet-allocation.ts";
import { type FleetAllocationContext, fleetAllocationHandlers } from "../../lifecycles/fleet-allocation/handlers.ts";
import { explainAnyThing } from "../../services/explain/any-thing.ts";
import { fleetAllocationStore } from "../../store/fleet/allocations.ts";
import { defineThing } from "./thing.ts";
import { withContext } from "./with-context.ts";

export const fleetAllocation = defineThing<FleetAllocation>({
  store: fleetAllocationStore,
  handlers: ({ allocator }) =>
    withContext(
      fleetAllocationHandlers,
      (): Omit<FleetAllocationContext, "call"> => ({ ...(allocator && { allocator }) }),
    ),
  explain: (deps, id) =>
    explainAnyThing(deps, fleetAllocationStore.lifecycle.kind, id, "millwright fleet allocation list"),
  methods: ({ services }) => [partOf(FleetAllocationService, fleetAllocations(services))],
  routes: (deps) => [...allocationRoutes(deps), ...roceRoutes(deps)],
  methodGroup: "fleet",
  // biome-ignore format: a table is read by its columns
  roles: {
    "millwright.v1.FleetAllocationService/RequestAllocation":      ["operator"],
    "millwright.v1.FleetAllocationService/GetAllocation":          ["viewer"],
    "millwright.v1.FleetAllocationService/ListAllocations":        ["viewer"],
    "millwright.v1.FleetAllocationService/ReleaseAllocation":      ["operator"],
    "millwright.v1.FleetAllocationService/ForceReleaseAllocation": ["admin"],
    "millwright.v1.FleetAllocationService/SetRoceAssignments":     ["admin"],
    "millwright.v1.FleetAllocationService/ListRoceAssignments":    ["viewer"],
    "millwright.v1.FleetAllocationService/RemoveRoceAssignment":   ["admin"],
    "GET /api/v1/fleet/allocations":                               ["viewer"],
    "POST /api/v1/fleet/allocations":                              ["operator"],
    "GET /api/v1/fleet/allocations/{id}":                          ["viewer"],
    "POST /api/v1/fleet/allocations/{id}/release":                 ["operator"],
    "POST /api/v1/fleet/allocations/{id}/force-release":           ["admin"],
    "GET /api/v1/fleet/sites/{site}/roce":                         ["viewer"],
    "PUT /api/v1/fleet/sites/{site}/roce":                         ["admin"],
    "DELETE /api/v1/fleet/sites/{site}/roce/{hostname}":           ["admin"],
  },
});

import { FleetNodeService } from "../../../contract/millwright/v1/fleet_node_pb.js";
import type { MethodRoles } from "../../api/auth/access.ts";
import { fleetJobs, fleetNodes } from "../../api/millwright/fleet/fleet-nodes.ts";
import { nodeRoutes } from "../../api/rest/fleet/nodes.ts";
import { partOf } from "../../api/transport/service-parts.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { type FleetNodeContext, fleetNodeHandlers } from "../../lifecycles/fleet-node/handlers.ts";
import { fleetNodeTarget } from "../../runs/targets/fleet-node.ts";
import { explainFleetNode } from "../../services/explain/fleet-node.ts";
import { fleetNodeListing } from "../../store/fleet/node-list.ts";
import { fleetNodeStore } from "../../store/fleet/nodes.ts";
import { fleetPartsOf } from "../fleet/fleet-parts.ts";
import type { WiredTarget } from "../run-targets.ts";
import { defineThing, type TargetTools } from "./thing.ts";
import { withContext } from "./with-context.ts";

const runTarget = (tools: TargetTools): WiredTarget<FleetNode> => {
  const partsOf = fleetPartsOf(tools);
  return {
    kind: fleetNodeTarget,
    providerOf: () => ({ name: "maas", can: {} }),
    partsOf: ({ target: { thing } }) => partsOf(thing),
  };
};

/** Operators work with nodes; who takes one out of the fleet for good, or erases it, is an administrator. */
// biome-ignore format: a table is read by its columns
const roles: MethodRoles = {
  "millwright.v1.FleetNodeService/OnboardNode":        ["operator"],
  "millwright.v1.FleetNodeService/GetFleetNode":       ["viewer"],
  "millwright.v1.FleetNodeService/ListFleetNodes":     ["viewer"],
  "millwright.v1.FleetNodeService/ActOnNode":          ["operator"],
  "millwright.v1.FleetNodeService/DecommissionNode":   ["admin"],
  "millwright.v1.FleetNodeService/PreviewDecommission": ["viewer"],
  "millwright.v1.FleetNodeService/RetireNode":         ["operator"],
  "millwright.v1.FleetNodeService/ReactivateNode":     ["operator"],
  "millwright.v1.FleetNodeService/QuarantineNode":     ["operator"],
  "millwright.v1.FleetNodeService/RecoverNode":        ["operator"],
  "millwright.v1.FleetNodeService/AbortDrain":         ["operator"],
  "millwright.v1.FleetNodeService/RollbackRemoval":    ["operator"],
  "GET /api/v1/fleet/nodes":                           ["viewer"],
  "POST /api/v1/fleet/nodes":                          ["operator"],
  "GET /api/v1/fleet/nodes/{node}":                    ["viewer"],
  "POST /api/v1/fleet/nodes/{node}/actions":           ["operator"],
  "POST /api/v1/fleet/nodes/{node}/decommission":      ["admin"],
  "POST /api/v1/fleet/nodes/{node}/decommission/preview": ["viewer"],
  "POST /api/v1/fleet/nodes/{node}/retire":            ["operator"],
  "POST /api/v1/fleet/nodes/{node}/reactivate":        ["operator"],
  "POST /api/v1/fleet/nodes/{node}/quarantine":        ["operator"],
  "POST /api/v1/fleet/nodes/{node}/recover":           ["operator"],
  "POST /api/v1/fleet/nodes/{node}/drain-abort":       ["operator"],
  "POST /api/v1/fleet/nodes/{node}/remove-rollback":   ["operator"],
};

export const fleetNode = defineThing<FleetNode>({
  store: fleetNodeStore,
  handlers: ({ clock }) => withContext(fleetNodeHandlers, (): FleetNodeContext => ({ clock })),
  runTarget,
  explain: explainFleetNode,
  methods: ({ services, runs }) => [
    partOf(FleetNodeService, fleetNodes(services)),
    ...(runs ? [partOf(FleetNodeService, fleetJobs({ ...services, ...runs }))] : []),
  ],
  routes: nodeRoutes,
  roles,
  listing: fleetNodeListing,
});

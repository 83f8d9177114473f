import { FleetNodeService } from "../../../contract/millwright/v1/fleet_node_pb.js";
import type { MethodRoles } from "../../api/auth/access.ts";
import { fleetJobs, fleetNodes } from "../../api/millwright/fleet/fleet-nodes.ts";
import { nodeRoutes } from "../../api/rest/fleet/nodes.ts";
import { taskRoutes } from "../../api/rest/fleet/tasks.ts";
import { partOf } from "../../api/transport/service-parts.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { type FleetNodeContext, fleetNodeHandlers } from "../../lifecycles/fleet-node/handlers.ts";
import { fleetNodeTarget } from "../../runs/targets/fleet-node.ts";
import { startsRun } from "../../runs/targets/new-run.ts";
import { paramsOfJob, planOfJob } from "../../runs/workflows/fleet/plan-of-job.ts";
import { FLEET_ONBOARDING, FLEET_RUN_TYPES } from "../../runs/workflows/fleet/words.ts";
import { allWorkflows } from "../../runs/workflows/index.ts";
import { explainFleetNode } from "../../services/explain/fleet-node.ts";
import { policyOf } from "../../services/fleet/jobs.ts";
import { workflowOf } from "../../services/run/workflow-starts.ts";
import { fleetNodeListing } from "../../store/fleet/node-list.ts";
import { fleetNodeStore } from "../../store/fleet/nodes.ts";
import { fleetPartsOf } from "../fleet/fleet-parts.ts";
import type { WiredTarget } from "../run-targets.ts";
import { defineThing, type HandlerTools, type TargetTools } from "./thing.ts";
import { withContext } from "./with-context.ts";

const runTarget = (tools: TargetTools): WiredTarget<FleetNode> => {
  return { kind: fleetNodeTarget, providerOf: () => ({ name: "maas", can: {} }), partsOf: fleetPartsOf(tools) };
};

function contextOf({ clock, db, runs }: HandlerTools): FleetNodeContext {
  if (!runs) return { clock };
  const { steps, workflows = allWorkflows } = runs;
  return {
    clock,
    async startOnboarding(node) {
      const workflow = workflowOf({ workflows }, { workflow: FLEET_ONBOARDING });
      const job = { workflow, node, policy: await policyOf(db, node) };
      const target = { kind: fleetNodeStore.lifecycle.kind, id: node.id };
      const run = {
        target,
        plan: planOfJob(job, steps),
        params: paramsOfJob(job),
        initiator: `agent of ${node.hostname}`,
      };
      return startsRun(run, [node.id, "onboard", node.facts.enrollment?.issue ?? 0], {
        type: FLEET_RUN_TYPES.fleet_onboarding,
      });
    },
  };
}

/** Operators work with nodes; who takes one out of the fleet for good, or erases it, is an administrator. */
// biome-ignore format: a table is read by its columns
const roles: MethodRoles = {
  "millwright.v1.FleetNodeService/OnboardNode":        ["operator"],
  "millwright.v1.FleetNodeService/OnboardNodes":       ["operator"],
  "POST /api/v1/fleet/batches":                        ["operator"],
  "millwright.v1.FleetNodeService/ReissueBootstrap":   ["operator"],
  "POST /api/v1/fleet/nodes/{node}/bootstrap":         ["operator"],
  "millwright.v1.FleetNodeService/PreviewOnboarding":  ["viewer"],
  "millwright.v1.FleetNodeService/PreviewOnboardings": ["viewer"],
  "millwright.v1.FleetNodeService/PreviewNodeMove":    ["viewer"],
  "POST /api/v1/fleet/batches/preview":                ["viewer"],
  "POST /api/v1/fleet/nodes/{node}/retire/preview":    ["viewer"],
  "POST /api/v1/fleet/nodes/{node}/quarantine/preview": ["viewer"],
  "POST /api/v1/fleet/nodes/{node}/recover/preview":   ["viewer"],
  "POST /api/v1/fleet/nodes/{node}/reactivate/preview": ["viewer"],
  "POST /api/v1/fleet/nodes/{node}/drain-abort/preview": ["viewer"],
  "POST /api/v1/fleet/nodes/{node}/remove-rollback/preview": ["viewer"],
  "millwright.v1.FleetNodeService/GetFleetNode":       ["viewer"],
  "millwright.v1.FleetNodeService/ListFleetNodes":     ["viewer"],
  "millwright.v1.FleetNodeService/ListNodeTasks":      ["viewer"],
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
  "GET /api/v1/fleet/tasks":                           ["viewer"],
  "POST /api/v1/fleet/nodes":                          ["operator"],
  "POST /api/v1/fleet/nodes/preview":                  ["viewer"],
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
  handlers: (tools) => withContext(fleetNodeHandlers, () => contextOf(tools)),
  runTarget,
  explain: explainFleetNode,
  // Both parts or none: a service with a part of its methods is not served.
  methods: ({ services, runs }) =>
    runs
      ? [partOf(FleetNodeService, fleetNodes(services)), partOf(FleetNodeService, fleetJobs({ ...services, ...runs }))]
      : [],
  routes: (deps) => [...nodeRoutes(deps), ...taskRoutes(deps)],
  methodGroup: "fleet",
  // biome-ignore format: a table is read by its columns
  things: {
    "millwright.v1.FleetNodeService/ListFleetNodes":                     "list",
    "GET /api/v1/fleet/nodes":                                           "list",
    "millwright.v1.FleetNodeService/GetFleetNode":                       "fleet_node node",
    "GET /api/v1/fleet/nodes/{node}":                                    "fleet_node params.node",
    "millwright.v1.FleetNodeService/PreviewNodeMove":                    "fleet_node node",
    "millwright.v1.FleetNodeService/ActOnNode":                          "fleet_node node",
    "millwright.v1.FleetNodeService/DecommissionNode":                   "fleet_node node",
    "millwright.v1.FleetNodeService/PreviewDecommission":                "fleet_node node",
    "millwright.v1.FleetNodeService/RetireNode":                         "fleet_node node",
    "millwright.v1.FleetNodeService/ReactivateNode":                     "fleet_node node",
    "millwright.v1.FleetNodeService/QuarantineNode":                     "fleet_node node",
    "millwright.v1.FleetNodeService/RecoverNode":                        "fleet_node node",
    "millwright.v1.FleetNodeService/AbortDrain":                         "fleet_node node",
    "millwright.v1.FleetNodeService/RollbackRemoval":                    "fleet_node node",
    "POST /api/v1/fleet/nodes/{node}/actions":                           "fleet_node params.node",
    "POST /api/v1/fleet/nodes/{node}/decommission":                      "fleet_node params.node",
    "POST /api/v1/fleet/nodes/{node}/decommission/preview":              "fleet_node params.node",
    "POST /api/v1/fleet/nodes/{node}/retire":                            "fleet_node params.node",
    "POST /api/v1/fleet/nodes/{node}/retire/preview":                    "fleet_node params.node",
    "POST /api/v1/fleet/nodes/{node}/reactivate":                        "fleet_node params.node",
    "POST /api/v1/fleet/nodes/{node}/reactivate/preview":                "fleet_node params.node",
    "POST /api/v1/fleet/nodes/{node}/quarantine":                        "fleet_node params.node",
    "POST /api/v1/fleet/nodes/{node}/quarantine/preview":                "fleet_node params.node",
    "POST /api/v1/fleet/nodes/{node}/recover":                           "fleet_node params.node",
    "POST /api/v1/fleet/nodes/{node}/recover/preview":                   "fleet_node params.node",
    "POST /api/v1/fleet/nodes/{node}/drain-abort":                       "fleet_node params.node",
    "POST /api/v1/fleet/nodes/{node}/drain-abort/preview":               "fleet_node params.node",
    "POST /api/v1/fleet/nodes/{node}/remove-rollback":                   "fleet_node params.node",
    "POST /api/v1/fleet/nodes/{node}/remove-rollback/preview":           "fleet_node params.node",
  },
  roles,
  listing: fleetNodeListing,
});

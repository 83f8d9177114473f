import type { ServiceImpl } from "@connectrpc/connect";
import type { FleetNodeService } from "../../../../contract/millwright/v1/fleet_node_pb.js";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import { type Bootstrap, bootstrapOf, reissueBootstrap } from "../../../services/fleet/bootstrap.ts";
import { decommissionNode, previewDecommission, retireNode } from "../../../services/fleet/decommission.ts";
import { actOnNode } from "../../../services/fleet/node-actions.ts";
import {
  abortDrain,
  quarantineNode,
  reactivateNode,
  recoverNode,
  rollbackRemoval,
} from "../../../services/fleet/node-verbs.ts";
import { pageNodes, viewNode } from "../../../services/fleet/nodes.ts";
import { onboardNode } from "../../../services/fleet/onboard.ts";
import { onboardNodes } from "../../../services/fleet/onboard-many.ts";
import { previewMove } from "../../../services/fleet/previews/move-preview.ts";
import { previewOnboardings } from "../../../services/fleet/previews/onboard-many-preview.ts";
import { previewOnboarding } from "../../../services/fleet/previews/onboard-preview.ts";
import { pageTasks } from "../../../services/fleet/tasks.ts";
import type { RunDeps } from "../../../services/run/deps.ts";
import { timestampOf } from "../../convert/fields.ts";
import { listRequestFrom, pageOf } from "../../convert/listing.ts";
import { callerKey } from "../../transport/interceptors.ts";
import { fleetNodeDetailOf, fleetNodeOf, fleetTaskOf, onboardingPreviewOf } from "./node-messages.ts";

const detailOf = async (deps: ServiceDeps, node: string) => ({ node: fleetNodeDetailOf(await viewNode(deps, node)) });

const bundleOf = ({ command, expiresAt }: Bootstrap) => ({ command, expiresAt: timestampOf(expiresAt) });

/** What can be done where no runs are: reading, and moving nodes by hand. */
export const fleetNodes = (deps: ServiceDeps) =>
  ({
    getFleetNode: ({ node }) => detailOf(deps, node),
    async listFleetNodes(request, { values }) {
      const { withDeleted } = request;
      const page = await pageNodes(
        deps,
        { ...listRequestFrom(request, values.get(callerKey)), withDeleted },
        fleetNodeOf,
      );
      return { nodes: [...page.items], ...pageOf(page) };
    },
    async listNodeTasks(request) {
      const { node } = request;
      const page = await pageTasks(deps, { ...listRequestFrom(request, null), node }, fleetTaskOf);
      return { tasks: [...page.items], ...pageOf(page) };
    },
    async reissueBootstrap({ node }, { values }) {
      return { bootstrap: bundleOf(await reissueBootstrap(deps, values.get(callerKey), node)) };
    },
    async quarantineNode(request, { values }) {
      await quarantineNode(deps, values.get(callerKey), request);
      return detailOf(deps, request.node);
    },
    async recoverNode(request, { values }) {
      await recoverNode(deps, values.get(callerKey), request);
      return detailOf(deps, request.node);
    },
    async reactivateNode(request, { values }) {
      await reactivateNode(deps, values.get(callerKey), request);
      return detailOf(deps, request.node);
    },
    async previewNodeMove(request) {
      const { node, to, notes } = await previewMove(deps, request);
      return { node: fleetNodeOf(node), toState: to, notes: [...notes] };
    },
    async abortDrain(request, { values }) {
      await abortDrain(deps, values.get(callerKey), request);
      return detailOf(deps, request.node);
    },
    async rollbackRemoval(request, { values }) {
      await rollbackRemoval(deps, values.get(callerKey), request);
      return detailOf(deps, request.node);
    },
  }) satisfies Partial<ServiceImpl<typeof FleetNodeService>>;

/** What starts jobs, or acts on them. */
export const fleetJobs = (deps: RunDeps) =>
  ({
    async onboardNode(request, { values }) {
      const node = await onboardNode(deps, values.get(callerKey), request);
      const bootstrap = bootstrapOf(deps, node);
      return { ...(await detailOf(deps, node.id)), ...(bootstrap && { bootstrap: bundleOf(bootstrap) }) };
    },
    async onboardNodes({ requestId, nodes }, { values }) {
      return { runId: (await onboardNodes(deps, values.get(callerKey), { requestId, nodes })).id };
    },
    async previewOnboarding(request, { values }) {
      return onboardingPreviewOf(await previewOnboarding(deps, values.get(callerKey), request));
    },
    async previewOnboardings({ nodes }, { values }) {
      const rows = await previewOnboardings(deps, values.get(callerKey), nodes);
      return { nodes: rows.map((row) => ({ hostname: row.hostname, preview: onboardingPreviewOf(row) })) };
    },
    async actOnNode(request, { values }) {
      await actOnNode(deps, values.get(callerKey), request);
      return detailOf(deps, request.node);
    },
    async decommissionNode(request, { values }) {
      await decommissionNode(deps, values.get(callerKey), request);
      return detailOf(deps, request.node);
    },
    async previewDecommission(request) {
      const { stages, allocations } = await previewDecommission(deps, request);
      return { stages: stages.map((stage) => ({ ...stage })), allocations: [...allocations] };
    },
    async retireNode(request, { values }) {
      await retireNode(deps, values.get(callerKey), request);
      return detailOf(deps, request.node);
    },
  }) satisfies Partial<ServiceImpl<typeof FleetNodeService>>;

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  FleetAllocationSchema,
  FleetAllocationService,
  RoceAssignmentSchema,
} from "../../../../contract/millwright/v1/fleet_allocation_pb.js";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import {
  type FleetAllocation,
  getAllocation,
  messageOfAllocation,
  pageAllocations,
  releaseAllocation,
  requestAllocation,
} from "../../../services/fleet/allocations.ts";
import {
  deleteRoceAssignment,
  pageRoceAssignments,
  type RoceAssignment,
  setRoceAssignments,
} from "../../../services/fleet/roce.ts";
import { timestampOf } from "../../convert/fields.ts";
import { callerKey } from "../../transport/interceptors.ts";

const allocationOf = ({
  state,
  stateSince,
  createdAt,
  ...allocation
}: FleetAllocation): MessageInitShape<typeof FleetAllocationSchema> => ({
  id: allocation.id,
  node: allocation.node,
  hostname: allocation.hostname,
  tenant: allocation.tenant,
  createdBy: allocation.createdBy,
  state: state.name,
  message: messageOfAllocation(state, allocation.outcome),
  stateSince: timestampOf(stateSince),
  createdAt: timestampOf(createdAt),
});

const roceOf = ({ createdAt, links, ...of }: RoceAssignment): MessageInitShape<typeof RoceAssignmentSchema> => ({
  ...of,
  links: [...links],
  createdAt: timestampOf(createdAt),
});

export const fleetAllocations = (deps: ServiceDeps): ServiceImpl<typeof FleetAllocationService> => ({
  async requestAllocation(request, { values }) {
    return { allocation: allocationOf(await requestAllocation(deps, values.get(callerKey), request)) };
  },
  async getAllocation({ id }) {
    return { allocation: allocationOf(await getAllocation(deps, id)) };
  },
  async listAllocations(request) {
    const { items, nextPageToken } = await pageAllocations(deps, request);
    return { allocations: items.map(allocationOf), nextPageToken };
  },
  async releaseAllocation({ id }, { values }) {
    return { allocation: allocationOf(await releaseAllocation(deps, values.get(callerKey), { id, force: false })) };
  },
  async forceReleaseAllocation({ id }, { values }) {
    return { allocation: allocationOf(await releaseAllocation(deps, values.get(callerKey), { id, force: true })) };
  },
  async setRoceAssignments(request, { values }) {
    return { assignments: (await setRoceAssignments(deps, values.get(callerKey), request)).map(roceOf) };
  },
  async listRoceAssignments({ site, hostname, pageSize, pageToken }) {
    const { items, nextPageToken } = await pageRoceAssignments(deps, { site, hostname, pageSize, pageToken });
    return { assignments: items.map(roceOf), nextPageToken };
  },
  async removeRoceAssignment(request, { values }) {
    await deleteRoceAssignment(deps, values.get(callerKey), request);
    return {};
  },
});

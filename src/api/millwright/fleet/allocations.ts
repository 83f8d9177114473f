import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  FleetAllocationService,
  RoceAssignmentSchema,
} from "../../../../contract/millwright/v1/fleet_allocation_pb.js";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import {
  deleteRoceAssignment,
  pageRoceAssignments,
  type RoceAssignment,
  setRoceAssignments,
} from "../../../services/fleet/roce.ts";
import { timestampOf } from "../../convert/fields.ts";
import { callerKey } from "../../transport/interceptors.ts";

const roceOf = ({ createdAt, links, ...of }: RoceAssignment): MessageInitShape<typeof RoceAssignmentSchema> => ({
  ...of,
  links: [...links],
  createdAt: timestampOf(createdAt),
});

export const fleetAllocations = (deps: ServiceDeps): ServiceImpl<typeof FleetAllocationService> => ({
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

import type { ServiceImpl } from "@connectrpc/connect";
import type { Forge } from "../../../contract/forge/forge_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { getRackProfile } from "../../services/catalog/rack-profiles.ts";
import { deleteRack } from "../../services/rack/deletion.ts";
import { findRacks, findRacksByIds, getRack, searchRackIds, viewRacks } from "../../services/rack/racks.ts";
import { required } from "../convert/fields.ts";
import { callerOf, forgeDevice, idsOf } from "./device-methods.ts";
import { onDemandRackMaintenance } from "./rack/on-demand.ts";
import { forgeProfileOf, forgeRackOf } from "./rack-messages.ts";
import { rackStateJson } from "./rack-state.ts";

export const forgeRacks = (deps: ServiceDeps) => {
  const device = forgeDevice(deps, "rack", "rack_id", rackStateJson);
  return {
    async findRackIds({ label }) {
      const ids = await searchRackIds(deps, label && { key: label.key, value: label.value });
      return { rackIds: ids.map((id) => ({ id })) };
    },
    async findRacksByIds({ rackIds }) {
      const racks = await findRacksByIds(deps, idsOf(rackIds));
      return { racks: (await viewRacks(deps, racks)).map(forgeRackOf) };
    },
    async getRack({ id }) {
      return { rack: (await viewRacks(deps, await findRacks(deps, id))).map(forgeRackOf) };
    },
    async deleteRack({ id }, context) {
      await deleteRack(deps, callerOf(context), { id });
      return {};
    },
    async getRackProfile({ rackId }) {
      const rack = await getRack(deps, required(rackId, "rack_id").id, "rack_id");
      return forgeProfileOf(rack, rack.profileId === null ? undefined : await getRackProfile(deps, rack.profileId));
    },
    onDemandRackMaintenance: (request, context) => onDemandRackMaintenance(deps, request, context),
    listRackHealthReports: ({ rackId }) => device.listReports(rackId),
    insertRackHealthReport: ({ rackId, healthReportEntry }, context) =>
      device.insertReport(rackId, healthReportEntry, context),
    removeRackHealthReport: ({ rackId, source }, context) => device.removeReport(rackId, source, context),
    findRackStateHistories: ({ rackIds }) => device.histories(rackIds),
    updateRackMetadata: ({ rackId, ...change }, context) => device.updateMetadata(rackId, change, context),
  } satisfies Partial<ServiceImpl<typeof Forge>>;
};

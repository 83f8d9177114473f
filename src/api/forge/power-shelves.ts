import type { ServiceImpl } from "@connectrpc/connect";
import type { Forge } from "../../../contract/forge/forge_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import {
  deletePowerShelf,
  findPowerShelves,
  findPowerShelvesByIds,
  forceDeletePowerShelf,
  searchPowerShelfIds,
  setPowerShelfMaintenance,
} from "../../services/power-shelf/power-shelves.ts";
import { viewPowerShelves } from "../../services/power-shelf/view.ts";
import { required } from "../convert/fields.ts";
import { searchFrom } from "./device-messages.ts";
import { callerOf, forgeDevice, idsOf } from "./device-methods.ts";
import { forgePowerShelfOf, operationFrom } from "./power-shelf-messages.ts";
import { forgeStateOf, stateForForgeWord } from "./state-messages.ts";

const KIND = "power_shelf";
/** The one of its BMC. Its address is part of the shelf's record, and goes with it. */
const INTERFACES_OF_SHELF = 1;

export const forgePowerShelves = (deps: ServiceDeps) => {
  const device = forgeDevice(deps, KIND, "power_shelf_id", forgeStateOf);
  return {
    async findPowerShelves({ powerShelfId, name }) {
      const query = { ...(powerShelfId && { id: powerShelfId.id }), ...(name !== undefined && { name }) };
      const views = await viewPowerShelves(deps, await findPowerShelves(deps, query));
      return { powerShelves: views.map(forgePowerShelfOf) };
    },
    async findPowerShelfIds(filter) {
      const ids = await searchPowerShelfIds(deps, searchFrom(filter, stateForForgeWord));
      return { ids: ids.map((id) => ({ id })) };
    },
    async findPowerShelvesByIds({ powerShelfIds }) {
      const views = await viewPowerShelves(deps, await findPowerShelvesByIds(deps, idsOf(powerShelfIds)));
      return { powerShelves: views.map(forgePowerShelfOf) };
    },
    async deletePowerShelf({ id }, context) {
      await deletePowerShelf(deps, callerOf(context), required(id, "id").id);
      return {};
    },
    async adminForceDeletePowerShelf({ powerShelfId, deleteInterfaces }, context) {
      const { id } = required(powerShelfId, "power_shelf_id");
      await forceDeletePowerShelf(deps, callerOf(context), id);
      return { powerShelfId: id, interfacesDeleted: deleteInterfaces ? INTERFACES_OF_SHELF : 0 };
    },
    async setPowerShelfMaintenance({ powerShelfIds, operation, reference }, context) {
      await setPowerShelfMaintenance(deps, callerOf(context), {
        powerShelfIds: idsOf(powerShelfIds),
        operation: operationFrom(operation),
        reference,
      });
      return {};
    },
    listPowerShelfHealthReports: ({ powerShelfId }) => device.listReports(powerShelfId),
    insertPowerShelfHealthReport: ({ powerShelfId, healthReportEntry }, context) =>
      device.insertReport(powerShelfId, healthReportEntry, context),
    removePowerShelfHealthReport: ({ powerShelfId, source }, context) =>
      device.removeReport(powerShelfId, source, context),
    findPowerShelfStateHistories: ({ powerShelfIds }) => device.histories(powerShelfIds),
    updatePowerShelfMetadata: ({ powerShelfId, ...change }, context) =>
      device.updateMetadata(powerShelfId, change, context),
  } satisfies Partial<ServiceImpl<typeof Forge>>;
};

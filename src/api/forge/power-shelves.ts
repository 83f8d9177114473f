import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { Forge } from "../../../contract/forge/forge_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import {
  insertPowerShelfHealthReport,
  listPowerShelfHealthReports,
  removePowerShelfHealthReport,
} from "../../services/device/health-reports.ts";
import {
  deletePowerShelf,
  findPowerShelfStateHistories,
  findPowerShelves,
  findPowerShelvesByIds,
  forceDeletePowerShelf,
  searchPowerShelfIds,
  setPowerShelfMaintenance,
  updatePowerShelfMetadata,
} from "../../services/power-shelf/power-shelves.ts";
import { viewPowerShelves } from "../../services/power-shelf/view.ts";
import { required } from "../convert/fields.ts";
import { healthReportEntryFrom, healthReportEntryOf } from "../convert/health.ts";
import { metadataFrom } from "../convert/metadata.ts";
import { callerKey } from "../transport/interceptors.ts";
import { forgePowerShelfOf, operationFrom, searchFrom, stateHistoriesOf } from "./power-shelf-messages.ts";

const idsOf = (ids: readonly { readonly id: string }[]): string[] => ids.map(({ id }) => id);
const callerOf = ({ values }: HandlerContext) => values.get(callerKey);

export const forgePowerShelves = (deps: ServiceDeps) =>
  ({
    async findPowerShelves({ powerShelfId, name }) {
      const query = { ...(powerShelfId && { id: powerShelfId.id }), ...(name !== undefined && { name }) };
      const views = await viewPowerShelves(deps, await findPowerShelves(deps, query));
      return { powerShelves: views.map(forgePowerShelfOf) };
    },
    async findPowerShelfIds(filter) {
      const ids = await searchPowerShelfIds(deps, searchFrom(filter));
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
    async adminForceDeletePowerShelf({ powerShelfId }, context) {
      const { id } = required(powerShelfId, "power_shelf_id");
      await forceDeletePowerShelf(deps, callerOf(context), id);
      return { powerShelfId: id, interfacesDeleted: 0 }; // no interfaces are recorded apart from the shelf
    },
    async setPowerShelfMaintenance({ powerShelfIds, operation, reference }, context) {
      await setPowerShelfMaintenance(deps, callerOf(context), {
        powerShelfIds: idsOf(powerShelfIds),
        operation: operationFrom(operation),
        reference,
      });
      return {};
    },
    async listPowerShelfHealthReports({ powerShelfId }) {
      const entries = await listPowerShelfHealthReports(deps, required(powerShelfId, "power_shelf_id").id);
      return { healthReportEntries: entries.map(healthReportEntryOf) };
    },
    async insertPowerShelfHealthReport({ powerShelfId, healthReportEntry }, context) {
      await insertPowerShelfHealthReport(deps, callerOf(context), {
        powerShelfId: required(powerShelfId, "power_shelf_id").id,
        ...healthReportEntryFrom(healthReportEntry),
      });
      return {};
    },
    async removePowerShelfHealthReport({ powerShelfId, source }, context) {
      await removePowerShelfHealthReport(deps, callerOf(context), required(powerShelfId, "power_shelf_id").id, source);
      return {};
    },
    async findPowerShelfStateHistories({ powerShelfIds }) {
      return stateHistoriesOf(await findPowerShelfStateHistories(deps, idsOf(powerShelfIds)));
    },
    async updatePowerShelfMetadata({ powerShelfId, ifVersionMatch, metadata }, context) {
      await updatePowerShelfMetadata(deps, callerOf(context), {
        id: required(powerShelfId, "power_shelf_id").id,
        ifVersionMatch,
        metadata: metadataFrom(required(metadata, "metadata")),
      });
      return {};
    },
  }) satisfies Partial<ServiceImpl<typeof Forge>>;

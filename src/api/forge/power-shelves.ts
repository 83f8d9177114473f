import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { Forge } from "../../../contract/forge/forge_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { findHealthReports, insertHealthReport, removeHealthReport } from "../../services/device/health-reports.ts";
import { findStateHistories } from "../../services/device/histories.ts";
import { updateMetadata } from "../../services/device/metadata.ts";
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
import { healthReportEntryFrom, healthReportEntryOf } from "../convert/health.ts";
import { metadataFrom } from "../convert/metadata.ts";
import { callerKey } from "../transport/interceptors.ts";
import { forgePowerShelfOf, operationFrom, searchFrom, stateHistoriesOf } from "./power-shelf-messages.ts";

const idsOf = (ids: readonly { readonly id: string }[]): string[] => ids.map(({ id }) => id);
const KIND = "power_shelf";
const shelfNamed = (named: { readonly id: string } | undefined) => {
  const field = "power_shelf_id";
  return { kind: KIND, id: required(named, field).id, field };
};
/** The one of its BMC. Its address is part of the shelf's record, and goes with it. */
const INTERFACES_OF_SHELF = 1;
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
    async listPowerShelfHealthReports({ powerShelfId }) {
      const entries = await findHealthReports(deps, shelfNamed(powerShelfId));
      return { healthReportEntries: entries.map(healthReportEntryOf) };
    },
    async insertPowerShelfHealthReport({ powerShelfId, healthReportEntry }, context) {
      const device = shelfNamed(powerShelfId);
      await insertHealthReport(deps, callerOf(context), { device, ...healthReportEntryFrom(healthReportEntry) });
      return {};
    },
    async removePowerShelfHealthReport({ powerShelfId, source }, context) {
      await removeHealthReport(deps, callerOf(context), { device: shelfNamed(powerShelfId), source });
      return {};
    },
    async findPowerShelfStateHistories({ powerShelfIds }) {
      const query = { ids: idsOf(powerShelfIds), field: "power_shelf_ids" };
      return stateHistoriesOf(await findStateHistories(deps, KIND, query));
    },
    async updatePowerShelfMetadata({ powerShelfId, ifVersionMatch, metadata }, context) {
      const device = shelfNamed(powerShelfId);
      const replacement = metadataFrom(required(metadata, "metadata"));
      await updateMetadata(deps, callerOf(context), { device, ifVersionMatch, metadata: replacement });
      return {};
    },
  }) satisfies Partial<ServiceImpl<typeof Forge>>;

import type { HandlerContext } from "@connectrpc/connect";
import type { HealthReportEntry, Metadata } from "../../../contract/forge/shared_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { findHealthReports, insertHealthReport, removeHealthReport } from "../../services/device/health-reports.ts";
import { findStateHistories } from "../../services/device/histories.ts";
import { updateMetadata } from "../../services/device/metadata.ts";
import { required } from "../convert/fields.ts";
import { healthReportEntryFrom, healthReportEntryOf } from "../convert/health.ts";
import { metadataFrom } from "../convert/metadata.ts";
import { callerKey } from "../transport/interceptors.ts";
import { type StateJson, stateHistoriesOf } from "./device-messages.ts";

type Named = { readonly id: string } | undefined;

export const idsOf = (ids: readonly { readonly id: string }[]): string[] => ids.map(({ id }) => id);
export const callerOf = ({ values }: HandlerContext) => values.get(callerKey);

/** What the contract's methods do for devices of every kind alike. `field` is the request's field with an id, such as rack_id. */
export const forgeDevice = (deps: ServiceDeps, kind: string, field: string, stateJson: StateJson) => {
  const named = (id: Named) => ({ kind, id: required(id, field).id, field });
  return {
    async listReports(id: Named) {
      return { healthReportEntries: (await findHealthReports(deps, named(id))).map(healthReportEntryOf) };
    },
    async insertReport(id: Named, entry: HealthReportEntry | undefined, context: HandlerContext) {
      const device = named(id);
      await insertHealthReport(deps, callerOf(context), { device, ...healthReportEntryFrom(entry) });
      return {};
    },
    async removeReport(id: Named, source: string, context: HandlerContext) {
      await removeHealthReport(deps, callerOf(context), { device: named(id), source });
      return {};
    },
    async histories(ids: readonly { readonly id: string }[]) {
      return stateHistoriesOf(await findStateHistories(deps, kind, { ids: idsOf(ids), field: `${field}s` }), stateJson);
    },
    async updateMetadata(
      id: Named,
      {
        ifVersionMatch,
        metadata,
      }: { readonly ifVersionMatch?: string | undefined; readonly metadata?: Metadata | undefined },
      context: HandlerContext,
    ) {
      const device = named(id);
      const replacement = metadataFrom(required(metadata, "metadata"));
      await updateMetadata(deps, callerOf(context), { device, ifVersionMatch, metadata: replacement });
      return {};
    },
  };
};

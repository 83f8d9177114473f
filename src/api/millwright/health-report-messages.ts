import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type DeviceHealthReportSchema,
  HealthReportMode,
  type PutHealthReportRequest,
} from "../../../contract/millwright/v1/health_report_pb.js";
import type { ApplyMode, HealthReportEntry, InsertHealthReport } from "../../services/device/health-reports.ts";
import { countedSources } from "../../services/device/health-reports.ts";
import { durationFrom, timestampOf, wordFor } from "../convert/fields.ts";
import { healthReportFrom, healthReportOf } from "../convert/health.ts";

const WIRE_HEALTH_MODES = {
  merge: HealthReportMode.MERGE,
  replace: HealthReportMode.REPLACE,
} as const satisfies Record<ApplyMode, HealthReportMode>;

const MODES = {
  [HealthReportMode.UNSPECIFIED]: "merge",
  [HealthReportMode.MERGE]: "merge",
  [HealthReportMode.REPLACE]: "replace",
} as const satisfies Record<HealthReportMode, ApplyMode>;

export const deviceNamed = ({ kind, id }: { readonly kind: string; readonly id: string }) => ({
  kind,
  id,
  field: "id",
});

export function insertFrom(request: PutHealthReportRequest): InsertHealthReport {
  const expiresAfter = durationFrom(request.expiresAfter, "expires_after");
  return {
    device: deviceNamed(request),
    report: healthReportFrom(request.report, "report"),
    field: "report",
    mode: wordFor<ApplyMode>(MODES, request.mode, "mode"),
    ...(expiresAfter !== null && { expiresAfter }),
  };
}

export function deviceReportsOf(
  entries: readonly HealthReportEntry[],
): MessageInitShape<typeof DeviceHealthReportSchema>[] {
  const counted = countedSources(entries);
  return entries.map(({ report, mode, expiresAt }) => ({
    report: healthReportOf(report),
    mode: WIRE_HEALTH_MODES[mode],
    counts: counted.has(report.source),
    expiresAt: timestampOf(expiresAt),
  }));
}

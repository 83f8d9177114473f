import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  HealthReportApplyMode,
  type HealthReportEntrySchema,
  type HealthReportEntry as WireEntry,
} from "../../../contract/forge/shared_pb.js";
import type { HealthReportSchema, HealthReport as WireReport } from "../../../contract/health/health_pb.js";
import type {
  ApplyMode,
  HealthReportEntry,
  InsertHealthReport,
  MergedHealth,
  NewHealthReport,
} from "../../services/device/health-reports.ts";
import { dateFrom, required, timestampOf, wordFor } from "./fields.ts";

/** In bytes. A report that is not refused for its length takes less; what is larger is refused before anybody reads it. */
export const LARGEST_REPORT_REQUEST = 1_024 * 1_024;

export const WIRE_MODES = {
  merge: HealthReportApplyMode.Merge,
  replace: HealthReportApplyMode.Replace,
} as const satisfies Record<ApplyMode, HealthReportApplyMode>;

const MODES = {
  [HealthReportApplyMode.Merge]: "merge",
  [HealthReportApplyMode.Replace]: "replace",
} as const satisfies Record<HealthReportApplyMode, ApplyMode>;

const ENTRY = "health_report_entry";

export function healthReportEntryFrom(entry: WireEntry | undefined): Omit<InsertHealthReport, "device"> {
  const { report, mode } = required(entry, ENTRY);
  const field = `${ENTRY}.report`;
  return {
    report: healthReportFrom(report, field),
    field,
    mode: wordFor<ApplyMode>(MODES, mode, `${ENTRY}.mode`),
  };
}

export function healthReportFrom(report: WireReport | undefined, field: string): NewHealthReport {
  const { source, observedAt, successes, alerts, triggeredBy } = required(report, field);
  const at = (index: number, part: string) => `${field}.alerts[${index}].${part}`;
  return {
    source,
    observedAt: dateFrom(observedAt, `${field}.observed_at`),
    triggeredBy: triggeredBy ?? null,
    successes: successes.map(({ id, target }) => ({ id, target: target ?? null })),
    alerts: alerts.map((alert, index) => ({
      id: alert.id,
      target: alert.target ?? null,
      inAlertSince: dateFrom(alert.inAlertSince, at(index, "in_alert_since")),
      message: alert.message,
      tenantMessage: alert.tenantMessage ?? null,
      classifications: alert.classifications,
    })),
  };
}

export const healthReportEntryOf = ({
  report,
  mode,
}: HealthReportEntry): MessageInitShape<typeof HealthReportEntrySchema> => ({
  report: healthReportOf(report),
  mode: WIRE_MODES[mode],
});

export const healthReportOf = (report: MergedHealth["report"]): MessageInitShape<typeof HealthReportSchema> => ({
  source: report.source,
  observedAt: timestampOf(report.observedAt),
  successes: report.successes.map(({ id, target }) => ({ id, ...(target !== null && { target }) })),
  alerts: report.alerts.map(({ target, inAlertSince, tenantMessage, classifications, ...alert }) => ({
    ...alert,
    inAlertSince: timestampOf(inAlertSince),
    classifications: [...classifications],
    ...(target !== null && { target }),
    ...(tenantMessage !== null && { tenantMessage }),
  })),
  ...(report.triggeredBy !== null && { triggeredBy: report.triggeredBy }),
});

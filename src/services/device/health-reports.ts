import { AppError } from "../../kernel/errors.ts";
import { parsePowerShelfId } from "../../kernel/ids.ts";
import {
  type ApplyMode,
  type HealthReport,
  type HealthReportEntry,
  listHealthReports,
  type ProbeAlert,
  putHealthReport,
  removeHealthReport,
} from "../../store/device/health-reports.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { getPowerShelf, unknownShelf } from "../power-shelf/power-shelves.ts";
import { probeOf } from "./merged-health.ts";

export type {
  ApplyMode,
  HealthReport,
  HealthReportEntry,
  ProbeAlert,
  ProbeSuccess,
} from "../../store/device/health-reports.ts";

/** As it is handed in: times that are missing are the server's to give. */
export interface NewHealthReport extends Omit<HealthReport, "observedAt" | "alerts"> {
  readonly observedAt: Date | null;
  readonly alerts: readonly NewAlert[];
}
export type NewAlert = Omit<ProbeAlert, "inAlertSince"> & { readonly inAlertSince: Date | null };

export interface InsertHealthReport {
  readonly powerShelfId: string;
  readonly report: NewHealthReport;
  readonly mode: ApplyMode;
}

const KIND = "power_shelf";
const LONGEST_NAME = 256;
const LARGEST_REPORT = 256 * 1_024;
const REPORT = "health_report_entry.report";

export async function listPowerShelfHealthReports(
  deps: ServiceDeps,
  id: string,
): Promise<readonly HealthReportEntry[]> {
  const shelf = await getPowerShelf(deps, id, "power_shelf_id");
  return (await listHealthReports(deps.db, KIND, [shelf.id])).get(shelf.id) ?? [];
}

/** Takes the place of the earlier report of the same source; an alert that goes on keeps the time since when it does. */
export async function insertPowerShelfHealthReport(
  deps: ServiceDeps,
  caller: Caller,
  { powerShelfId, report, mode }: InsertHealthReport,
): Promise<void> {
  const key = { kind: KIND, id: parsePowerShelfId(powerShelfId, "power_shelf_id") };
  checkReport(report);
  const now = nowOf(deps);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [key]);
    const known = (await listHealthReports(tx, KIND, [key.id])).get(key.id) ?? [];
    const earlier = known.find((entry) => entry.report.source === report.source)?.report.alerts ?? [];
    await tell(tx, deps, caller, key.id, { source: report.source, mode, alerts: report.alerts.map(({ id }) => id) });
    await putHealthReport(tx, key, { mode, report: withTimes(report, earlier, now) });
  });
}

export async function removePowerShelfHealthReport(
  deps: ServiceDeps,
  caller: Caller,
  powerShelfId: string,
  source: string,
): Promise<void> {
  const key = { kind: KIND, id: parsePowerShelfId(powerShelfId, "power_shelf_id") };
  if (source === "") throw new AppError("invalid_argument", "source: is required", { field: "source" });
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [key]);
    await tell(tx, deps, caller, key.id, { source, removed: true });
    if (await removeHealthReport(tx, key, source)) return;
    throw new AppError("not_found", `power shelf ${key.id} has no health report of ${source}`, {
      field: "source",
      next: `millwright power-shelf health-report show ${key.id}`,
    });
  });
}

async function tell(
  tx: Parameters<typeof recordChange>[0],
  deps: ServiceDeps,
  caller: Caller,
  id: string,
  data: NonNullable<Parameters<typeof recordChange>[2]["data"]>,
): Promise<void> {
  const change = { id, type: "health_report_changed", ...doneBy(caller), data, set: {}, touchesBasis: false };
  if (!(await recordChange(tx, storeOf(deps.stores, KIND), change))) throw unknownShelf(id);
}

function withTimes(report: NewHealthReport, earlier: readonly ProbeAlert[], now: Date): HealthReport {
  const since = new Map(earlier.map((alert) => [probeOf(alert), alert.inAlertSince]));
  return {
    ...report,
    observedAt: report.observedAt ?? now,
    alerts: report.alerts.map((alert) => ({
      ...alert,
      inAlertSince: alert.inAlertSince ?? since.get(probeOf(alert)) ?? now,
    })),
  };
}

function checkReport(report: NewHealthReport): void {
  checkName(report.source, `${REPORT}.source`);
  for (const [index, { id }] of report.alerts.entries()) checkName(id, `${REPORT}.alerts[${index}].id`);
  for (const [index, { id }] of report.successes.entries()) checkName(id, `${REPORT}.successes[${index}].id`);
  if (JSON.stringify(report).length > LARGEST_REPORT) {
    throw new AppError("invalid_argument", `${REPORT}: is larger than ${LARGEST_REPORT} characters`, { field: REPORT });
  }
}

function checkName(name: string, field: string): void {
  if (name !== "" && name.length <= LONGEST_NAME) return;
  throw new AppError("invalid_argument", `${field}: 1 to ${LONGEST_NAME} characters are required`, { field });
}

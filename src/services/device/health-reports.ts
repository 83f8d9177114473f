import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import {
  type ApplyMode,
  deleteHealthReport,
  type HealthReport,
  type HealthReportEntry,
  listHealthReports,
  type ProbeAlert,
  putHealthReport,
} from "../../store/device/health-reports.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { Queryable, Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { type DeviceName, findDevice, type NamedDevice, nameDevice, unknownDevice } from "./device.ts";
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
  readonly device: DeviceName;
  readonly report: NewHealthReport;
  readonly mode: ApplyMode;
}

const LONGEST_NAME = 256;
const LARGEST_REPORT = 256 * 1_024;
const REPORT = "health_report_entry.report";

/** In the order of their sources. */
export async function findHealthReports(deps: ServiceDeps, name: DeviceName): Promise<readonly HealthReportEntry[]> {
  const device = nameDevice(deps, name);
  await findDevice(deps.db, device);
  return reportsOn(deps.db, device);
}

const reportsOn = async (db: Queryable, { key }: NamedDevice): Promise<readonly HealthReportEntry[]> =>
  (await listHealthReports(db, key.kind, [key.id])).get(key.id) ?? [];

/** Replaces the earlier report of the same source; an alert that goes on keeps the time since when it does. */
export async function insertHealthReport(
  deps: ServiceDeps,
  caller: Caller,
  { device: name, report, mode }: InsertHealthReport,
): Promise<void> {
  const device = nameDevice(deps, name);
  checkReport(report);
  const now = nowOf(deps);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [device.key]);
    const known = await reportsOn(tx, device);
    const earlier = known.find((entry) => entry.report.source === report.source)?.report.alerts ?? [];
    await tell(tx, caller, device, { source: report.source, mode, alerts: report.alerts.map(({ id }) => id) });
    await putHealthReport(tx, device.key, { mode, report: withTimes(report, earlier, now) });
  });
}

export async function removeHealthReport(
  deps: ServiceDeps,
  caller: Caller,
  { device: name, source }: { readonly device: DeviceName; readonly source: string },
): Promise<void> {
  const device = nameDevice(deps, name);
  if (source === "") throw new AppError("invalid_argument", "source: is required", { field: "source" });
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [device.key]);
    await tell(tx, caller, device, { source, removed: true });
    if (await deleteHealthReport(tx, device.key, source)) return;
    const { noun, command } = device.traits;
    throw new AppError("not_found", `${noun} ${device.key.id} has no health report of ${source}`, {
      field: "source",
      next: `millwright ${command} health-report show ${device.key.id}`,
    });
  });
}

async function tell(
  tx: Transaction,
  caller: Caller,
  { key, store, traits }: NamedDevice,
  data: JsonObject,
): Promise<void> {
  const change = { id: key.id, type: "health_report_changed", ...doneBy(caller), data, set: {}, touchesBasis: false };
  if (!(await recordChange(tx, store, change))) throw unknownDevice(traits, key.id);
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

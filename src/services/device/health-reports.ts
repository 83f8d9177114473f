import { AppError } from "../../kernel/errors.ts";
import { isPrintable } from "../../kernel/printable.ts";
import { type Duration, hours } from "../../kernel/time/duration.ts";
import type {
  ApplyMode,
  HealthReportEntry,
  NewHealthReport,
  ProbeSuccess,
} from "../../lifecycles/device/health-report.ts";
import { mergeHealth } from "../../lifecycles/device/merged-health.ts";
import { changeHealth, type HealthChange } from "../../store/device/health-changes.ts";
import { listHealthReports, measureHealthReports, type ReportsSize } from "../../store/device/health-reports.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { type DeviceName, findDevice, type NamedDevice, nameDevice, unknownDevice } from "./device.ts";

export type {
  ApplyMode,
  HealthReport,
  HealthReportEntry,
  NewHealthReport,
  ProbeAlert,
  ProbeSuccess,
} from "../../lifecycles/device/health-report.ts";
export type { MergedHealth } from "../../lifecycles/device/merged-health.ts";

export interface InsertHealthReport {
  readonly device: DeviceName;
  readonly report: NewHealthReport;
  readonly mode: ApplyMode;
  /** Where the request has the report, for refusals; `report` unless told. */
  readonly field?: string;
  /** How long the report counts; absent: until it is replaced or removed. */
  readonly expiresAfter?: Duration;
}

const LONGEST_NAME = 256;
const LARGEST_REPORT = 256 * 1_024;
/** What one device has stored at most. A list of its reports stays far below the 4 MiB that gRPC clients take. */
const MOST_ON_DEVICE: ReportsSize = { sources: 64, bytes: 1_024 * 1_024 };

/** In the order of their sources; those that have expired are left out. */
export async function findHealthReports(deps: ServiceDeps, name: DeviceName): Promise<readonly HealthReportEntry[]> {
  const device = nameDevice(deps, name);
  const { key } = device;
  await findDevice(deps.db, device);
  return (await listHealthReports(deps.db, key.kind, [key.id])).get(key.id) ?? [];
}

/** Replaces the earlier report of the same source; an alert that goes on keeps the time since when it does. */
export async function insertHealthReport(
  deps: ServiceDeps,
  caller: Caller,
  { device: name, report, mode, field = "report", expiresAfter }: InsertHealthReport,
): Promise<void> {
  const device = nameDevice(deps, name);
  checkReport(report, field);
  checkExpiry(expiresAfter);
  const expiresAt = expiresAfter === undefined ? null : new Date(nowOf(deps).getTime() + expiresAfter);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [device.key]);
    device.traits.refuseReports?.(await findDevice(tx, device));
    const before = await measureHealthReports(tx, device.key);
    await change(tx, deps, caller, device, { key: device.key, put: report, mode, expiresAt });
    refuseTooMuch(device, before, await measureHealthReports(tx, device.key));
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
    const ended = await change(tx, deps, caller, device, { key: device.key, end: source });
    if (ended > 0) return;
    const { noun, command } = device.traits;
    throw new AppError("not_found", `${noun} ${device.key.id} has no health report of ${source}`, {
      field: "source",
      next: `millwright ${command} health-report show ${device.key.id}`,
    });
  });
}

/** Returns how many reports ended. */
async function change(
  tx: Transaction,
  deps: ServiceDeps,
  caller: Caller,
  { traits }: NamedDevice,
  what: HealthChange,
): Promise<number> {
  const { unknown, ended } = await changeHealth(tx, deps.stores, [what], { ...doneBy(caller), now: nowOf(deps) });
  if (unknown.length > 0) throw unknownDevice(traits, what.key.id);
  return ended;
}

/** Only growth is refused: where there is too much already, a source can still replace its report by one that is no larger. */
function refuseTooMuch({ key, traits: { noun, command } }: NamedDevice, before: ReportsSize, after: ReportsSize): void {
  const isBeyond = (what: keyof ReportsSize) => after[what] > MOST_ON_DEVICE[what] && after[what] > before[what];
  const limit = isBeyond("sources")
    ? `has health reports of ${before.sources} sources, and the limit is ${MOST_ON_DEVICE.sources}`
    : isBeyond("bytes")
      ? `would have ${after.bytes} bytes of health reports, and the limit is ${MOST_ON_DEVICE.bytes}`
      : undefined;
  if (limit === undefined) return;
  throw new AppError("exhausted", `${noun} ${key.id} ${limit}; remove reports of sources that no longer report`, {
    next: `millwright ${command} health-report show ${key.id}`,
  });
}

function checkReport(report: NewHealthReport, field: string): void {
  checkName(report.source, `${field}.source`);
  checkText(report.triggeredBy, `${field}.triggered_by`);
  for (const [index, success] of report.successes.entries()) checkProbe(success, `${field}.successes[${index}]`);
  for (const [index, alert] of report.alerts.entries()) {
    checkProbe(alert, `${field}.alerts[${index}]`);
    for (const word of alert.classifications) checkText(word, `${field}.alerts[${index}].classifications`);
  }
  if (JSON.stringify(report).length > LARGEST_REPORT) {
    throw new AppError("invalid_argument", `${field}: is larger than ${LARGEST_REPORT} characters`, { field });
  }
}

function checkProbe({ id, target }: ProbeSuccess, field: string): void {
  checkName(id, `${field}.id`);
  checkText(target, `${field}.target`);
}

function checkName(name: string, field: string): void {
  if (name === "") throw new AppError("invalid_argument", `${field}: is required`, { field });
  checkText(name, field);
}

/** Names are compared and typed in commands, so what cannot be shown is refused, and not replaced as in messages. */
function checkText(text: string | null, field: string): void {
  if (text === null || (text.length <= LONGEST_NAME && isPrintable(text))) return;
  const rule = `must be printable, without control or direction characters, and at most ${LONGEST_NAME} characters long`;
  throw new AppError("invalid_argument", `${field}: ${rule}`, { field });
}

const LONGEST_EXPIRY = hours(366 * 24);

function checkExpiry(expiresAfter: Duration | undefined): void {
  if (expiresAfter === undefined || expiresAfter <= LONGEST_EXPIRY) return;
  const field = "expires_after";
  throw new AppError("invalid_argument", `${field}: must be at most a year; leave it out for no end`, { field });
}

/** The sources of those reports that count: not of those that another one replaces. */
export const countedSources = (entries: readonly HealthReportEntry[]): ReadonlySet<string> =>
  new Set(mergeHealth(entries).sources.map(({ source }) => source));

import type { BmcDeviceFacts } from "./bmc-device.ts";
import {
  type ApplyMode,
  type HealthReport,
  type HealthReportEntry,
  type ProbeAlert,
  type ProbeSuccess,
  probeOf,
} from "./health-report.ts";

/** All reports on a thing as one, and which of them went into it. */
export interface MergedHealth {
  readonly report: Omit<HealthReport, "observedAt"> & { readonly observedAt: Date | null };
  readonly sources: readonly { readonly source: string; readonly mode: ApplyMode }[];
}

/** A device's health in a word. */
export type HealthWord = "ok" | "warning" | "critical" | "unknown";

/** Alerts do not say how bad they are; only the BMC does, of its own, and only where its report counts. */
export function healthWord({ report, sources }: MergedHealth, ofDevice: BmcDeviceFacts["health"]): HealthWord {
  if (sources.length === 0) return "unknown";
  if (report.alerts.length === 0) return "ok";
  return ofDevice === "critical" && sources.some(({ source }) => source === DEVICE_SOURCE) ? "critical" : "warning";
}

const MERGED_SOURCE = "aggregate";
const DEVICE_SOURCE = "bmc";
const DEVICE_PROBE = "BmcHealth";

/** Reports that replace count alone; where there is none, all that are merged count. */
export function mergeHealth(entries: readonly HealthReportEntry[]): MergedHealth {
  const replacing = entries.filter(({ mode }) => mode === "replace");
  const counted = replacing.length > 0 ? replacing : entries;
  const reports = counted.map(({ report }) => report);
  const alerts = mergeAlerts(reports.flatMap((report) => report.alerts));
  const alerting = new Set(alerts.map(probeOf));
  const successes = new Map<string, ProbeSuccess>();
  for (const success of reports.flatMap((report) => report.successes)) {
    if (!alerting.has(probeOf(success))) successes.set(probeOf(success), success);
  }
  const observed = reports.map(({ observedAt }) => observedAt.getTime());
  return {
    report: {
      source: MERGED_SOURCE,
      observedAt: observed.length === 0 ? null : new Date(Math.max(...observed)),
      triggeredBy: null,
      successes: [...successes.values()],
      alerts,
    },
    sources: counted.map(({ report, mode }) => ({ source: report.source, mode })),
  };
}

/** What the device's own BMC says of its health, as one more report; none while it says nothing. */
export function deviceReport(
  { health, observedAt }: Pick<BmcDeviceFacts, "health" | "observedAt">,
  since: Date,
): HealthReportEntry[] {
  if (health === null || health === "unknown") return [];
  const probe = { id: DEVICE_PROBE, target: null };
  const alert: ProbeAlert = {
    ...probe,
    inAlertSince: since,
    message: `the BMC reports health ${health}`,
    tenantMessage: null,
    classifications: [],
  };
  const report = {
    source: DEVICE_SOURCE,
    observedAt: observedAt === null ? since : new Date(observedAt),
    triggeredBy: null,
    successes: health === "ok" ? [probe] : [],
    alerts: health === "ok" ? [] : [alert],
  };
  return [{ mode: "merge", report, expiresAt: null }];
}

/** One probe that several sources tell of is one alert: since the earliest, with what each has to say. */
function mergeAlerts(alerts: readonly ProbeAlert[]): ProbeAlert[] {
  return [...Map.groupBy(alerts, probeOf).values()].flatMap((same) => {
    const [first] = same;
    if (!first) return [];
    return {
      ...first,
      inAlertSince: new Date(Math.min(...same.map((alert) => alert.inAlertSince.getTime()))),
      message: distinct(same.map((alert) => alert.message)).join("\n"),
      tenantMessage: distinct(same.flatMap((alert) => alert.tenantMessage ?? [])).join("\n") || null,
      classifications: distinct(same.flatMap((alert) => alert.classifications)),
    };
  });
}

const distinct = (words: readonly string[]): string[] => [...new Set(words)];

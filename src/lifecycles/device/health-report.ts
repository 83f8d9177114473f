import { printableMessage } from "../../kernel/printable.ts";

/** merge: beside all others; replace: instead of all that are merged. */
export type ApplyMode = "merge" | "replace";

/** A probe that found nothing wrong. */
export interface ProbeSuccess {
  readonly id: string;
  /** The part of the device that the probe is about; null for all of it. */
  readonly target: string | null;
}

export interface ProbeAlert extends ProbeSuccess {
  readonly inAlertSince: Date;
  readonly message: string;
  readonly tenantMessage: string | null;
  readonly classifications: readonly string[];
}

/** All that one observer has to say about one device at one time. */
export interface HealthReport {
  readonly source: string;
  readonly observedAt: Date;
  readonly triggeredBy: string | null;
  readonly successes: readonly ProbeSuccess[];
  readonly alerts: readonly ProbeAlert[];
}

export interface HealthReportEntry {
  readonly report: HealthReport;
  readonly mode: ApplyMode;
  /** After this the report counts no more; null: it counts until it is replaced or removed. */
  readonly expiresAt: Date | null;
}

/** A report as it is handed in: the server gives the times that are missing. */
export interface NewHealthReport extends Omit<HealthReport, "observedAt" | "alerts"> {
  readonly observedAt: Date | null;
  readonly alerts: readonly NewAlert[];
}
export type NewAlert = Omit<ProbeAlert, "inAlertSince"> & { readonly inAlertSince: Date | null };

/** Which probe of which part. */
export const probeOf = ({ id, target }: Pick<ProbeSuccess, "id" | "target">): string => JSON.stringify([id, target]);

/**
 * The report as it is stored: with all its times, and with messages that can be shown. An alert that the source reported before keeps
 * the time since when it is open.
 */
export function reportToStore(report: NewHealthReport, earlier: readonly ProbeAlert[], now: Date): HealthReport {
  const since = new Map(earlier.map((alert) => [probeOf(alert), alert.inAlertSince]));
  return {
    ...report,
    observedAt: report.observedAt ?? now,
    alerts: report.alerts.map((alert) => ({
      ...alert,
      message: printableMessage(alert.message),
      tenantMessage: alert.tenantMessage === null ? null : printableMessage(alert.tenantMessage),
      inAlertSince: alert.inAlertSince ?? since.get(probeOf(alert)) ?? now,
    })),
  };
}

/** Whether two entries differ in nothing but times: the source has no news, and only reported again. */
export const isSameBesidesTimes = (one: HealthReportEntry, other: HealthReportEntry): boolean =>
  timeless(one) === timeless(other);

const timeless = ({ mode, report }: HealthReportEntry): string => {
  const { source, triggeredBy, successes, alerts } = report;
  return JSON.stringify([
    mode,
    source,
    triggeredBy,
    successes.map(({ id, target }) => [id, target]),
    alerts.map((alert) => [alert.id, alert.target, alert.message, alert.tenantMessage, alert.classifications]),
  ]);
};

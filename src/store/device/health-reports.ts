import { z } from "zod";
import { messageOf } from "../../kernel/errors.ts";
import type { ApplyMode, HealthReport, HealthReportEntry } from "../../lifecycles/device/health-report.ts";
import type { ThingKey } from "../lifecycle/things.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

const instant = z.iso.datetime().transform((text) => new Date(text));

const successSchema = z.object({ id: z.string(), target: z.string().nullable() });
const alertSchema = z.object({
  id: z.string(),
  target: z.string().nullable(),
  inAlertSince: instant,
  message: z.string(),
  tenantMessage: z.string().nullable(),
  classifications: z.array(z.string()),
});
const reportSchema = z.object({
  source: z.string(),
  observedAt: instant,
  triggeredBy: z.string().nullable(),
  successes: z.array(successSchema),
  alerts: z.array(alertSchema),
});

/** The reports on each of the things that have not expired, by the thing's id, in the order of their sources. */
export async function listHealthReports(
  db: Queryable,
  kind: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly HealthReportEntry[]>> {
  if (ids.length === 0) return new Map();
  const rows = await db.query<ReportRow>({
    name: "health_reports.list",
    text: `select id, source, mode, report, updated_at, expires_at from health_reports
            where kind = $1 and id = any($2) and (expires_at is null or expires_at > now()) order by id, source`,
    values: [kind, ids],
  });
  const entries = rows.map((row) => ({
    id: row.id,
    entry: { mode: row.mode, report: parseReport(row), expiresAt: row.expires_at },
  }));
  const byId = Map.groupBy(entries, ({ id }) => id);
  return new Map([...byId].map(([id, ofThing]) => [id, ofThing.map(({ entry }) => entry)]));
}

interface ReportRow {
  readonly id: string;
  readonly source: string;
  readonly mode: ApplyMode;
  readonly report: unknown;
  readonly updated_at: Date;
  readonly expires_at: Date | null;
}

const UNREADABLE = "ReportUnreadable";

/** One that does not parse hides no other, and is not passed over either: what it said may have been an alert. */
function parseReport({ source, report, updated_at }: ReportRow): HealthReport {
  const { data, error } = reportSchema.safeParse(report);
  if (data) return data;
  const alert = {
    id: UNREADABLE,
    target: null,
    inAlertSince: updated_at,
    message: `the health report of ${source} cannot be read; insert it again: ${messageOf(error)}`,
    tenantMessage: null,
    classifications: [],
  };
  return { source, observedAt: updated_at, triggeredBy: null, successes: [], alerts: [alert] };
}

/** How much is stored on a device, without what has expired. */
export interface ReportsSize {
  readonly sources: number;
  /** Of all reports as JSON text. */
  readonly bytes: number;
}

export async function measureHealthReports(db: Queryable, { kind, id }: ThingKey): Promise<ReportsSize> {
  const [row] = await db.query<ReportsSize>({
    name: "health_reports.measure",
    text: `select count(*) as sources, coalesce(sum(octet_length(report::text)), 0)::float8 as bytes from health_reports
            where kind = $1 and id = $2 and (expires_at is null or expires_at > now())`,
    values: [kind, id],
  });
  return row ?? { sources: 0, bytes: 0 };
}

/** A report and the device that it is on. */
export interface PlacedReport {
  readonly key: ThingKey;
  readonly entry: HealthReportEntry;
}

/** Each replaces the earlier report of its source. The caller holds the things' locks, and names no source of a thing twice. */
export async function putHealthReports(tx: Transaction, reports: readonly PlacedReport[]): Promise<void> {
  if (reports.length === 0) return;
  await tx.execute(
    `insert into health_reports (kind, id, source, mode, report, expires_at)
     select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::jsonb[], $6::timestamptz[])
     on conflict (kind, id, source) do update
       set mode = excluded.mode, report = excluded.report, expires_at = excluded.expires_at, updated_at = now()`,
    [
      reports.map(({ key }) => key.kind),
      reports.map(({ key }) => key.id),
      reports.map(({ entry }) => entry.report.source),
      reports.map(({ entry }) => entry.mode),
      reports.map(({ entry }) => JSON.stringify(entry.report)),
      reports.map(({ entry }) => entry.expiresAt),
    ],
  );
  failPoint("health-reports:put");
}

export interface PlacedSource {
  readonly key: ThingKey;
  readonly source: string;
  /** Whether it is a report that has expired which ends, and not one that counts; no, unless told. */
  readonly expired?: boolean;
}

/** Returns how many there were; the caller holds the things' locks. */
export async function deleteHealthReports(tx: Transaction, sources: readonly PlacedSource[]): Promise<number> {
  if (sources.length === 0) return 0;
  const removed = await tx.execute(
    `delete from health_reports h using unnest($1::text[], $2::text[], $3::text[], $4::boolean[]) as d(kind, id, source, expired)
      where h.kind = d.kind and h.id = d.id and h.source = d.source
        and d.expired = coalesce(h.expires_at <= now(), false)`,
    [
      sources.map(({ key }) => key.kind),
      sources.map(({ key }) => key.id),
      sources.map(({ source }) => source),
      sources.map(({ expired = false }) => expired),
    ],
  );
  failPoint("health-reports:removed");
  return removed;
}

/** Reports that have expired on devices of these kinds, the longest expired first. */
export async function listExpiredReports(
  db: Queryable,
  kinds: readonly string[],
  most: number,
): Promise<(PlacedSource & { readonly now: Date })[]> {
  const rows = await db.query<{ kind: string; id: string; source: string; now: Date }>(
    `select kind, id, source, now() as now from health_reports
      where expires_at <= now() and kind = any($1) order by expires_at limit ${Math.floor(most)}`,
    [kinds],
  );
  return rows.map(({ kind, id, source, now }) => ({ key: { kind, id }, source, now, expired: true }));
}

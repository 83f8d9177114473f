import { z } from "zod";
import { messageOf } from "../../kernel/errors.ts";
import type { ThingKey } from "../lifecycle/things.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

const APPLY_MODES = ["merge", "replace"] as const;
/** merge: beside all others; replace: instead of all that are merged. */
export type ApplyMode = (typeof APPLY_MODES)[number];

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

export type ProbeSuccess = Readonly<z.output<typeof successSchema>>;
export type ProbeAlert = Readonly<z.output<typeof alertSchema>>;

/** All that one observer has to say about one thing at one time. */
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
}

/** The reports on each of the things, by the thing's id, in the order of their sources. */
export async function listHealthReports(
  db: Queryable,
  kind: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly HealthReportEntry[]>> {
  if (ids.length === 0) return new Map();
  const rows = await db.query<ReportRow>({
    name: "health_reports.list",
    text: "select id, source, mode, report, updated_at from health_reports where kind = $1 and id = any($2) order by id, source",
    values: [kind, ids],
  });
  const entries = rows.map((row) => ({ id: row.id, entry: { mode: row.mode, report: parseReport(row) } }));
  const byId = Map.groupBy(entries, ({ id }) => id);
  return new Map([...byId].map(([id, ofThing]) => [id, ofThing.map(({ entry }) => entry)]));
}

interface ReportRow {
  readonly id: string;
  readonly source: string;
  readonly mode: ApplyMode;
  readonly report: unknown;
  readonly updated_at: Date;
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

/** Takes the place of the earlier report of the same source; the caller holds the thing's lock. */
export async function putHealthReport(
  tx: Transaction,
  { kind, id }: ThingKey,
  { mode, report }: HealthReportEntry,
): Promise<void> {
  await tx.execute(
    `insert into health_reports (kind, id, source, mode, report) values ($1, $2, $3, $4, $5)
     on conflict (kind, id, source) do update set mode = excluded.mode, report = excluded.report, updated_at = now()`,
    [kind, id, report.source, mode, JSON.stringify(report)],
  );
  failPoint("health-reports:put");
}

/** Whether there was such a report; the caller holds the thing's lock. */
export async function deleteHealthReport(tx: Transaction, { kind, id }: ThingKey, source: string): Promise<boolean> {
  const removed = await tx.execute("delete from health_reports where kind = $1 and id = $2 and source = $3", [
    kind,
    id,
    source,
  ]);
  failPoint("health-reports:removed");
  return removed > 0;
}

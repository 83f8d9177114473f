import { readFileSync } from "node:fs";
import { create, fromJson } from "@bufbuild/protobuf";
import {
  Forge,
  HealthReportApplyMode,
  HealthReportApplyModeSchema,
  type HealthReportEntry,
  HealthReportEntrySchema,
} from "../../../../contract/forge/forge_pb.js";
import { type HealthReport, HealthReportSchema } from "../../../../contract/health/health_pb.js";
import { UsageError } from "../../client/errors.ts";
import { enumWord, jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type Column, renderList } from "../../terminal/output.ts";
import { printDone, printList } from "../../terminal/printing.ts";
import { clockTime, isoTime } from "../../terminal/times.ts";
import { HEALTH_TEMPLATES } from "./health-templates.ts";
import { resolveShelf } from "./names.ts";

const alertsText = (entry: HealthReportEntry): string =>
  (entry.report?.alerts ?? [])
    .map((alert) => `${alert.id}${alert.target ? `[${alert.target}]` : ""}: ${alert.message}`)
    .join("; ");
const modeText = (entry: HealthReportEntry): string => enumWord(HealthReportApplyModeSchema, entry.mode);

const columns: readonly Column<HealthReportEntry>[] = [
  { title: "SOURCE", cell: (entry) => entry.report?.source ?? "" },
  { title: "MODE", cell: modeText },
  {
    title: "OBSERVED",
    cell: (entry) => clockTime(entry.report?.observedAt),
    plain: (entry) => isoTime(entry.report?.observedAt),
  },
  { title: "TRIGGERED BY", cell: (entry) => entry.report?.triggeredBy ?? "" },
  { title: "PASSED", cell: (entry) => String(entry.report?.successes.length ?? 0) },
  { title: "ALERTS", cell: alertsText, tone: (entry) => (alertsText(entry) === "" ? undefined : "bad") },
];
const entryJson = (entry: HealthReportEntry) => jsonOf(HealthReportEntrySchema, entry);

export async function showHealthReports(session: Session, id: string): Promise<undefined> {
  const forge = await session.client(Forge);
  const { healthReportEntries } = await forge.listPowerShelfHealthReports(
    { powerShelfId: { id } },
    { signal: session.signal },
  );
  await printList(
    session,
    { items: healthReportEntries, columns, json: entryJson },
    `Power shelf ${id} has no health reports.`,
  );
}

export interface AddReportOptions {
  readonly healthReport?: string;
  readonly template?: string;
  readonly message?: string;
  readonly replace?: boolean;
  readonly printOnly?: boolean;
}

export async function addHealthReport(
  session: Session,
  idOrName: string,
  options: AddReportOptions,
): Promise<undefined> {
  const report = await reportFrom(session, options);
  const entry = create(HealthReportEntrySchema, {
    report,
    mode: options.replace ? HealthReportApplyMode.Replace : HealthReportApplyMode.Merge,
  });
  if (options.printOnly) {
    await printReport(session, report);
    return;
  }
  const id = await resolveShelf(session, idOrName);
  const forge = await session.client(Forge);
  await forge.insertPowerShelfHealthReport(
    { powerShelfId: { id }, healthReportEntry: entry },
    { signal: session.signal },
  );
  await printDone(session, `Health report of ${report.source} put on power shelf ${id}.`, {
    id,
    source: report.source,
  });
}

export async function removeHealthReport(session: Session, id: string, source: string): Promise<undefined> {
  const forge = await session.client(Forge);
  await forge.removePowerShelfHealthReport({ powerShelfId: { id }, source }, { signal: session.signal });
  await printDone(session, `Health report of ${source} removed from power shelf ${id}.`, { id, source });
}

export async function printEmptyTemplate(session: Session): Promise<undefined> {
  const alert = { id: "", message: "", target: "", classifications: [""] };
  await printReport(
    session,
    create(HealthReportSchema, { source: "", alerts: [alert], successes: [{ id: "", target: "" }] }),
  );
}

/** A report to edit is JSON unless yaml or csv is asked for: it goes back in with --health-report. */
async function printReport(session: Session, report: HealthReport): Promise<void> {
  const style = session.style();
  const json = jsonOf(HealthReportSchema, report);
  if (style.format === "csv") {
    const item = create(HealthReportEntrySchema, { report });
    session.terminal.stdout.write(await renderList({ items: [item], columns, json: entryJson }, style));
    return;
  }
  const { yamlOf } = await import("../../terminal/output.ts");
  session.terminal.stdout.write(style.format === "yaml" ? await yamlOf(json) : `${JSON.stringify(json, null, 2)}\n`);
}

async function reportFrom(session: Session, options: AddReportOptions): Promise<HealthReport> {
  if ((options.healthReport === undefined) === (options.template === undefined)) {
    throw new UsageError(
      "give either --health-report or --template",
      "`millwright power-shelf health-report print-empty-template` prints a report to fill in",
    );
  }
  if (options.template !== undefined) {
    const template = Object.hasOwn(HEALTH_TEMPLATES, options.template) ? HEALTH_TEMPLATES[options.template] : undefined;
    if (!template)
      throw new UsageError(
        `--template: ${JSON.stringify(options.template)} is none of ${Object.keys(HEALTH_TEMPLATES).join(", ")}`,
      );
    return create(HealthReportSchema, template(options.message ?? ""));
  }
  const report = parseReport(await reportText(session, options.healthReport ?? ""));
  if (options.message !== undefined) for (const alert of report.alerts) alert.message = options.message;
  return report;
}

/** JSON as it is, @FILE, or - for standard input. */
async function reportText(session: Session, given: string): Promise<string> {
  if (given === "-") return session.terminal.stdin.readAll();
  if (!given.startsWith("@")) return given;
  try {
    return readFileSync(given.slice(1), "utf8");
  } catch {
    throw new UsageError(`--health-report: ${given.slice(1)} cannot be read`);
  }
}

function parseReport(text: string): HealthReport {
  try {
    return fromJson(HealthReportSchema, JSON.parse(text));
  } catch (error) {
    throw new UsageError(
      `--health-report: not a health report: ${error instanceof Error ? error.message : String(error)}`,
      "`millwright power-shelf health-report print-empty-template` prints one to fill in",
    );
  }
}

import { readFileSync } from "node:fs";
import { create, fromJson } from "@bufbuild/protobuf";
import { type HealthReport, HealthReportSchema } from "../../../../contract/health/health_pb.js";
import { UsageError } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type Column, renderList } from "../../terminal/output.ts";
import { jsonText } from "../../terminal/printable.ts";
import { printDone } from "../../terminal/printing.ts";
import { clockTime, isoTime, parseDuration } from "../../terminal/times.ts";
import { HEALTH_TEMPLATES } from "./templates.ts";

/** A report that is to be put on a device. */
export interface NewReport {
  readonly report: HealthReport;
  readonly replace: boolean;
  readonly expiresAfterMs: number | undefined;
}

/** How the reports on one kind of devices are read and written. */
export interface DeviceReports {
  /** "power shelf". */
  readonly noun: string;
  /** The id of the device that people name. */
  resolve(session: Session, idOrName: string): Promise<string>;
  show(session: Session, id: string): Promise<void>;
  put(session: Session, id: string, report: NewReport): Promise<void>;
  remove(session: Session, id: string, source: string): Promise<void>;
}

const alertsText = (report: HealthReport | undefined): string =>
  (report?.alerts ?? [])
    .map((alert) => `${alert.id}${alert.target ? `[${alert.target}]` : ""}: ${alert.message}`)
    .join("; ");

/** What a report says, beginning with its source. */
export const reportColumns = <T>(reportOf: (entry: T) => HealthReport | undefined): readonly Column<T>[] => [
  { title: "SOURCE", cell: (entry) => reportOf(entry)?.source ?? "" },
  {
    title: "OBSERVED",
    cell: (entry) => clockTime(reportOf(entry)?.observedAt),
    plain: (entry) => isoTime(reportOf(entry)?.observedAt),
  },
  { title: "TRIGGERED BY", cell: (entry) => reportOf(entry)?.triggeredBy ?? "" },
  { title: "PASSED", cell: (entry) => String(reportOf(entry)?.successes.length ?? 0) },
  {
    title: "ALERTS",
    cell: (entry) => alertsText(reportOf(entry)),
    tone: (entry) => (alertsText(reportOf(entry)) === "" ? undefined : "bad"),
  },
];

export async function showHealthReports(session: Session, of: DeviceReports, idOrName: string): Promise<undefined> {
  await of.show(session, await of.resolve(session, idOrName));
}

export interface AddReportOptions {
  readonly healthReport?: string;
  readonly template?: string;
  readonly message?: string;
  readonly replace?: boolean;
  readonly expiresAfter?: string;
  readonly printOnly?: boolean;
}

export async function addHealthReport(
  session: Session,
  of: DeviceReports,
  idOrName: string,
  options: AddReportOptions,
): Promise<undefined> {
  const { expiresAfter, replace = false } = options;
  const report = await reportFrom(session, options);
  const expiresAfterMs = expiresAfter === undefined ? undefined : parseDuration(expiresAfter, "--expires-after");
  if (options.printOnly) {
    await printReport(session, report);
    return;
  }
  const id = await of.resolve(session, idOrName);
  await of.put(session, id, { report, replace, expiresAfterMs });
  await printDone(session, `Health report of ${report.source} put on ${of.noun} ${id}.`, {
    id,
    source: report.source,
  });
}

export async function removeHealthReport(
  session: Session,
  of: DeviceReports,
  idOrName: string,
  source: string,
): Promise<undefined> {
  const id = await of.resolve(session, idOrName);
  await of.remove(session, id, source);
  await printDone(session, `Health report of ${source} removed from ${of.noun} ${id}.`, { id, source });
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
    const [source, ...rest] = reportColumns<HealthReport>((each) => each);
    const columns = [...(source ? [source] : []), { title: "MODE", cell: () => "merge" }, ...rest];
    session.terminal.stdout.write(await renderList({ items: [report], columns, json: () => json }, style));
    return;
  }
  const { yamlOf } = await import("../../terminal/output.ts");
  session.terminal.stdout.write(style.format === "yaml" ? await yamlOf(json) : `${jsonText(json, 2)}\n`);
}

async function reportFrom(session: Session, options: AddReportOptions): Promise<HealthReport> {
  if ((options.healthReport === undefined) === (options.template === undefined)) {
    throw new UsageError(
      "give either --health-report or --template",
      "`millwright machine health-report print-empty-template` prints a report to fill in",
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
      "`millwright machine health-report print-empty-template` prints one to fill in",
    );
  }
}

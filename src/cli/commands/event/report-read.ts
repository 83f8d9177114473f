import {
  type Doing,
  type GetReportResponse,
  GetReportResponseSchema,
  HistoryService,
} from "../../../../contract/millwright/v1/history_pb.js";
import { EXIT } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type Column, type OneThing, renderList, type Section, type Style } from "../../terminal/output.ts";
import { printOne } from "../../terminal/printing.ts";
import { clockTime, isoTime, parseDuration } from "../../terminal/times.ts";
import { alarmColumns } from "./event-view.ts";

export interface ReportOptions {
  readonly since: string;
}

/** Exit code 1 if something failed, or needed intervention. */
export async function showReport(session: Session, { since }: ReportOptions): Promise<number> {
  const from = session.terminal.now().getTime() - parseDuration(since, "--since");
  const client = await session.client(HistoryService);
  const at = { seconds: BigInt(Math.floor(from / 1_000)), nanos: (from % 1_000) * 1_000_000 };
  const report = await client.getReport({ since: at }, { signal: session.signal });
  await printOne(session, await reportThing(report, session.style()));
  if (report.cut) session.terminal.stderr.write("There is more than this; a shorter --since shows all of it.\n");
  return report.failures.length + report.interventions.length === 0 ? EXIT.ok : EXIT.operationFailed;
}

const doingColumns: readonly Column<Doing>[] = [
  { title: "WHO", cell: ({ actor }) => actor },
  { title: "DID", cell: ({ what }) => what },
  { title: "KIND", cell: ({ kind }) => kind },
  { title: "TIMES", cell: ({ count }) => String(count) },
  { title: "LAST", cell: ({ lastAt }) => clockTime(lastAt) },
  { title: "LAST THING", cell: ({ lastId }) => lastId },
];

const columns: readonly Column<GetReportResponse>[] = [
  { title: "SINCE", cell: ({ since }) => isoTime(since) },
  { title: "UNTIL", cell: ({ until }) => isoTime(until) },
  { title: "FAILURES", cell: ({ failures }) => String(failures.length) },
  { title: "INTERVENTIONS", cell: ({ interventions }) => String(interventions.length) },
  { title: "OPEN", cell: ({ openMachineIds }) => openMachineIds.join(" ") },
];

async function reportThing(report: GetReportResponse, style: Style): Promise<OneThing<GetReportResponse>> {
  const { failures, interventions, doings, openMachineIds } = report;
  const section = async <T>(title: string, items: readonly T[], shown: readonly Column<T>[]): Promise<Section[]> =>
    items.length === 0
      ? []
      : [{ title, body: await renderList({ items, columns: shown, json: () => null }, { ...style, format: "table" }) }];
  return {
    item: report,
    columns,
    json: (item) => jsonOf(GetReportResponseSchema, item),
    details: [
      ["Since", clockTime(report.since), "bold"],
      ["Until", clockTime(report.until)],
      ["Failures", String(failures.length), failures.length > 0 ? "bad" : "good"],
      ["Needed intervention", String(interventions.length), interventions.length > 0 ? "bad" : "good"],
      ["Still need intervention", openMachineIds.join(", "), "bad"],
    ],
    sections: [
      ...(await section("Failures", failures, alarmColumns)),
      ...(await section("Needed intervention", interventions, alarmColumns)),
      ...(await section("Who did what", doings, doingColumns)),
    ],
  };
}

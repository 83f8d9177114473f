import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  type DeviceHealthReport,
  DeviceHealthReportSchema,
  HealthReportMode,
  HealthReportModeSchema,
  HealthReportService,
} from "../../../../contract/millwright/v1/health_report_pb.js";
import { enumWord, jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printList } from "../../terminal/printing.ts";
import { clockTime, isoTime } from "../../terminal/times.ts";
import { type DeviceReports, type NewReport, reportColumns } from "./reports.ts";

const [source, ...rest] = reportColumns<DeviceHealthReport>(({ report }) => report);
const columns: readonly Column<DeviceHealthReport>[] = [
  ...(source ? [source] : []),
  { title: "MODE", cell: ({ mode }) => enumWord(HealthReportModeSchema, mode) },
  { title: "COUNTS", cell: ({ counts }) => (counts ? "yes" : "no, replaced"), plain: ({ counts }) => String(counts) },
  {
    title: "EXPIRES",
    cell: ({ expiresAt }) => (expiresAt === undefined ? "-" : clockTime(expiresAt)),
    plain: ({ expiresAt }) => isoTime(expiresAt),
  },
  ...rest,
];

/** Puts a report on a device of any kind. */
export async function putReport(session: Session, device: { kind: string; id: string }, given: NewReport) {
  const client = await session.client(HealthReportService);
  await client.putHealthReport(
    {
      ...device,
      report: given.report,
      mode: given.replace ? HealthReportMode.REPLACE : HealthReportMode.MERGE,
      ...(given.expiresAfterMs !== undefined && { expiresAfter: durationFromMs(given.expiresAfterMs) }),
    },
    { signal: session.signal },
  );
}

/** The reports on devices of one kind, as the server's own service has them. */
export const deviceReports = (kind: string, noun: string): DeviceReports => ({
  noun,
  resolve: async (_, id) => id,
  async show(session, id) {
    const client = await session.client(HealthReportService);
    const { reports } = await client.listHealthReports({ kind, id }, { signal: session.signal });
    const json = (entry: DeviceHealthReport) => jsonOf(DeviceHealthReportSchema, entry);
    await printList(session, { items: reports, columns, json }, `${capital(noun)} ${id} has no health reports.`);
  },
  put: (session, id, given) => putReport(session, { kind, id }, given),
  async remove(session, id, name) {
    const client = await session.client(HealthReportService);
    await client.removeHealthReport({ kind, id, source: name }, { signal: session.signal });
  },
});

const capital = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;

import {
  Forge,
  HealthReportApplyMode,
  HealthReportApplyModeSchema,
  type HealthReportEntry,
  HealthReportEntrySchema,
} from "../../../../contract/forge/forge_pb.js";
import { enumWord, jsonOf } from "../../client/proto-json.ts";
import type { Column } from "../../terminal/output.ts";
import { printList } from "../../terminal/printing.ts";
import { putReport } from "../health-report/device-reports.ts";
import { type DeviceReports, reportColumns } from "../health-report/reports.ts";
import { resolveShelf } from "./names.ts";

const [source, ...rest] = reportColumns<HealthReportEntry>(({ report }) => report);
const columns: readonly Column<HealthReportEntry>[] = [
  ...(source ? [source] : []),
  { title: "MODE", cell: ({ mode }) => enumWord(HealthReportApplyModeSchema, mode) },
  ...rest,
];
const json = (entry: HealthReportEntry) => jsonOf(HealthReportEntrySchema, entry);

/** The reports on power shelves, as forge.Forge has them; it has no word for reports that end by themselves. */
export const shelfReports: DeviceReports = {
  noun: "power shelf",
  resolve: resolveShelf,
  async show(session, id) {
    const forge = await session.client(Forge);
    const query = { powerShelfId: { id } };
    const { healthReportEntries } = await forge.listPowerShelfHealthReports(query, { signal: session.signal });
    const items = healthReportEntries;
    await printList(session, { items, columns, json }, `Power shelf ${id} has no health reports.`);
  },
  async put(session, id, given) {
    if (given.expiresAfterMs !== undefined) return putReport(session, { kind: "power_shelf", id }, given);
    const forge = await session.client(Forge);
    const mode = given.replace ? HealthReportApplyMode.Replace : HealthReportApplyMode.Merge;
    const healthReportEntry = { report: given.report, mode };
    await forge.insertPowerShelfHealthReport({ powerShelfId: { id }, healthReportEntry }, { signal: session.signal });
  },
  async remove(session, id, name) {
    const forge = await session.client(Forge);
    await forge.removePowerShelfHealthReport({ powerShelfId: { id }, source: name }, { signal: session.signal });
  },
};

import { Code, ConnectError } from "@connectrpc/connect";
import { Forge } from "../../../../contract/forge/forge_pb.js";
import {
  HealthReportApplyMode,
  HealthReportApplyModeSchema,
  type HealthReportEntry,
  HealthReportEntrySchema,
} from "../../../../contract/forge/shared_pb.js";
import { enumWord, jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printList } from "../../terminal/printing.ts";
import { deviceReports, putReport } from "../health-report/device-reports.ts";
import { type DeviceReports, reportColumns } from "../health-report/reports.ts";
import { resolveShelf } from "./names.ts";

const [source, ...rest] = reportColumns<HealthReportEntry>(({ report }) => report);
const columns: readonly Column<HealthReportEntry>[] = [
  ...(source ? [source] : []),
  { title: "MODE", cell: ({ mode }) => enumWord(HealthReportApplyModeSchema, mode) },
  ...rest,
];
const json = (entry: HealthReportEntry) => jsonOf(HealthReportEntrySchema, entry);
const ofServer = deviceReports("power_shelf", "power shelf");

/** As forge.Forge has them, which has no word for reports that end by themselves. */
async function showAsForge(session: Session, id: string): Promise<void> {
  const forge = await session.client(Forge);
  const query = { powerShelfId: { id } };
  const { healthReportEntries: items } = await forge.listPowerShelfHealthReports(query, { signal: session.signal });
  await printList(session, { items, columns, json }, `Power shelf ${id} has no health reports.`);
}

/** The reports on power shelves: through forge.Forge where it can, so that its principals can do so too. */
export const shelfReports: DeviceReports = {
  noun: "power shelf",
  resolve: resolveShelf,
  async show(session, id) {
    try {
      await ofServer.show(session, id);
    } catch (error) {
      // A principal of forge.Forge alone.
      if (ConnectError.from(error).code !== Code.PermissionDenied) throw error;
      await showAsForge(session, id);
    }
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

import { openAlerts } from "../../lifecycles/device/open-alerts.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import { listHealthReports } from "../device/health-reports.ts";
import { listContestedBoots } from "../install/contested-boots.ts";
import type { Queryable } from "../postgres/database.ts";
import { listSharedMacs } from "./mac-owners.ts";
import { listStrangeBoots } from "./strange-boots.ts";

/** The open alerts on machines, each in a few words: what others report, MAC addresses that two machines claim, and boots of other hardware or from two addresses. */
export async function listMachineAlerts(
  db: Queryable,
  ids: readonly string[],
): Promise<(id: string) => readonly string[]> {
  const reports = await listHealthReports(db, machineLifecycle.kind, ids);
  const shared = await listSharedMacs(db, ids);
  const strange = await listStrangeBoots(db, ids);
  const contested = await listContestedBoots(db, ids);
  return (id) => [
    ...openAlerts(reports.get(id) ?? []),
    ...[shared, strange, contested].flatMap((alerts) => alerts.get(id) ?? []),
  ];
}

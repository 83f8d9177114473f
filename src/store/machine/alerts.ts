import { openAlerts } from "../../lifecycles/device/open-alerts.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import { listHealthReports } from "../device/health-reports.ts";
import type { Queryable } from "../postgres/database.ts";
import { listSharedMacs } from "./mac-owners.ts";
import { listStrangeBoots } from "./strange-boots.ts";

/** The open alerts on machines, each in a few words: what others report, MAC addresses that two machines claim, and boots of other hardware. */
export async function listMachineAlerts(
  db: Queryable,
  ids: readonly string[],
): Promise<(id: string) => readonly string[]> {
  const reports = await listHealthReports(db, machineLifecycle.kind, ids);
  const shared = await listSharedMacs(db, ids);
  const strange = await listStrangeBoots(db, ids);
  return (id) => [...openAlerts(reports.get(id) ?? []), ...(shared.get(id) ?? []), ...(strange.get(id) ?? [])];
}

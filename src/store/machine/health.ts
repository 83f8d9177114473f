import { judgeAlerts } from "../../lifecycles/machine/observation.ts";
import type { HealthChangedBy } from "../device/health-changes.ts";
import type { Transaction } from "../postgres/database.ts";
import { listMachineAlerts } from "./alerts.ts";
import { recordConditionsOf } from "./conditions.ts";
import { machineStore } from "./machines.ts";

/**
 * Lets `Degraded` follow the health reports on machines. Checks would find out by themselves, but not before they are due, and people
 * who report an alert expect to see it. Retired machines are not checked, so nothing would ever end the condition there.
 */
export async function settleMachineHealth(
  tx: Transaction,
  ids: readonly string[],
  { now, ...by }: HealthChangedBy,
): Promise<void> {
  const { things } = await machineStore.load(tx, ids);
  const alertsOf = await listMachineAlerts(tx, ids);
  const observed = things
    .filter(({ state }) => state.name !== "RETIRED")
    .map((machine) => ({ machine, observed: judgeAlerts(machine, alertsOf(machine.id)) }));
  await recordConditionsOf(tx, observed, { ...by, now });
}

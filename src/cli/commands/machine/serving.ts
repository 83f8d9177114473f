import type { Session } from "../../client/session.ts";
import { valueText } from "../options/list-options.ts";
import { readMachines } from "./read.ts";

/** Those of the machines that serve a cluster and are not drained, as the server says. */
export async function servingOf(session: Session, machineIds: readonly string[]): Promise<string[]> {
  if (machineIds.length === 0) return [];
  const filter = `serves_cluster=true AND machine_id IN (${machineIds.map(valueText).join(", ")})`;
  return (await readMachines(session, filter)).map(({ machineId }) => machineId);
}

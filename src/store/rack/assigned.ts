import type { Assigned } from "../../lifecycles/rack/rack.ts";
import type { MachineInUse } from "../lifecycle/things.ts";
import type { Queryable } from "../postgres/database.ts";

const condition = (machine: string, type: string): string =>
  `(select c from jsonb_array_elements(${machine}.conditions) c where c ->> 'type' = '${type}' limit 1)`;

/**
 * Whether somebody uses a machine, as text: yes, no or unknown. Its fleet node is allocated; or a customer is set, unless the machine is
 * in MAINTENANCE and drained; or the machine is in the customer's cluster, and not drained in MAINTENANCE. A machine that was not checked yet, whose cluster did not
 * answer when it was (such a condition has a cause), or which a node contradicts, may be in use: nobody knows.
 */
export const assignedSql = (machine: string): string => {
  const inCluster = condition(machine, "InCustomerCluster");
  const isDrained = `coalesce((${condition(machine, "Drained")} ->> 'status')::boolean, false)`;
  return `case
    when exists (select 1 from fleet_nodes n join fleet_allocations a on a.node = n.id
                  where n.machine_id = ${machine}.id and n.state <> 'deleted' and a.state not in ('released', 'failed')) then 'yes'
    when ${machine}.customer_id is not null and not (${machine}.state = 'MAINTENANCE' and ${isDrained}) then 'yes'
    when ${machine}.state in ('RMA', 'RETIRED') or (${machine}.state = 'MAINTENANCE' and ${isDrained}) then 'no'
    when (${inCluster} ->> 'status')::boolean then 'yes'
    when ${inCluster} ->> 'reason' in ('NodeContradicts', 'SeveralNodes') then 'unknown'
    when ${inCluster} ? 'cause' then 'unknown'
    when ${inCluster} is null and ${machine}.state <> 'MAINTENANCE' then 'unknown'
    else 'no' end`;
};

interface InUseRow {
  readonly id: string;
  readonly rack: string | null;
  readonly assigned: Exclude<Assigned, "no">;
}

const machineOf = ({ id, assigned }: InUseRow): MachineInUse => ({ id, isUnknown: assigned === "unknown" });

/** Of these machines, those that somebody uses, or may use. */
export async function findMachinesInUse(
  db: Queryable,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly MachineInUse[]>> {
  const rows = await db.query<InUseRow>(
    `select m.id, m.rack, ${assignedSql("m")} as assigned from machines m where m.id = any($1) and ${assignedSql("m")} <> 'no'`,
    [ids],
  );
  return new Map(rows.map((row) => [row.id, [machineOf(row)]]));
}

/** The trays of these racks that somebody uses, or may use: those that nobody has checked are among them. */
export async function findTraysInUse(
  db: Queryable,
  rackIds: readonly string[],
): Promise<ReadonlyMap<string, readonly MachineInUse[]>> {
  const rows = await db.query<InUseRow & { readonly rack: string }>(
    `select m.rack, m.id, ${assignedSql("m")} as assigned from machines m
      where m.rack = any($1) and m.state <> 'RETIRED' and ${assignedSql("m")} <> 'no' order by m.id`,
    [rackIds],
  );
  return new Map([...Map.groupBy(rows, ({ rack }) => rack)].map(([rack, trays]) => [rack, trays.map(machineOf)]));
}

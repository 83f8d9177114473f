const condition = (machine: string, type: string): string =>
  `(select c from jsonb_array_elements(${machine}.conditions) c where c ->> 'type' = '${type}' limit 1)`;

/**
 * Whether somebody uses a machine, as text: yes, no or unknown. A customer is set, unless the machine is in MAINTENANCE and drained; or
 * the machine is in the customer's cluster, and in a phase that is shown as IN_SERVICE then. A machine that was not checked yet, or whose
 * cluster did not answer when it was (such a condition has a cause), may be in use: nobody knows.
 */
export const assignedSql = (machine: string): string => {
  const inCluster = condition(machine, "InCustomerCluster");
  const drained = condition(machine, "Drained");
  return `case
    when ${machine}.customer_id is not null and not (${machine}.state = 'MAINTENANCE' and coalesce((${drained} ->> 'status')::boolean, false)) then 'yes'
    when ${machine}.state in ('MAINTENANCE', 'RMA', 'RETIRED') then 'no'
    when (${inCluster} ->> 'status')::boolean then 'yes'
    when ${inCluster} is null or ${inCluster} ? 'cause' then 'unknown'
    else 'no' end`;
};

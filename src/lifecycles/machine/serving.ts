import { holds, type ObservedCondition } from "./conditions.ts";
import type { MachinePhase } from "./machine.ts";

interface ServingInput {
  readonly phase: MachinePhase;
  readonly conditions: readonly ObservedCondition[];
}

/** Whether something of a cluster runs on the machine, so that it is cut off with the machine: its node is there, and not drained. */
export const servesCluster = ({ phase, conditions }: ServingInput): boolean =>
  phase !== "RETIRED" && holds(conditions, "InCustomerCluster") && !holds(conditions, "Drained");

/** The same in SQL; a test of lists compares them. */
export const SERVES_CLUSTER_SQL = `(case when t.state <> 'RETIRED' and t.conditions @> '[{"type": "InCustomerCluster", "status": true}]'
                 and not t.conditions @> '[{"type": "Drained", "status": true}]' then 'true' else 'false' end)`;

/** The words of the filter. */
export const SERVING_WORDS = ["true", "false"] as const;

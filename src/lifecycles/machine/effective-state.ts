import { type ConditionType, holds, type ObservedCondition } from "./conditions.ts";
import type { MachinePhase } from "./machine.ts";

/** What effective state depends on, and nothing else. */
export interface EffectiveStateInput {
  readonly phase: MachinePhase;
  /** A run of the machine is PENDING or RUNNING. */
  readonly runIsActive: boolean;
  readonly inCustomerCluster: boolean;
}

/** Phases that are shown as they are, whatever the cluster says. */
const SHOWN_AS_THEY_ARE = ["RMA", "RETIRED", "MAINTENANCE"] as const satisfies readonly MachinePhase[];

/** The one truthful word for people, by the specification's precedence. Its twin in SQL is below; a test compares them. */
export function effectiveState({ phase, runIsActive, inCustomerCluster }: EffectiveStateInput): MachinePhase {
  if (runIsActive) return "PROVISIONING";
  if (SHOWN_AS_THEY_ARE.some((shown) => shown === phase)) return phase;
  if (inCustomerCluster) return "IN_SERVICE";
  return phase === "FACTORY_READY" ? "FACTORY_READY" : "READY";
}

/** SQL expressions: `phase` gives text, the others booleans, where null counts as false. */
export type EffectiveStateColumns = Readonly<Record<keyof EffectiveStateInput, string>>;

/** `effectiveState` in SQL. Immutable when the columns are, so that an index can hold it and a filter use that. */
export const effectiveStateSql = ({ phase, runIsActive, inCustomerCluster }: EffectiveStateColumns): string =>
  `case when ${runIsActive} then 'PROVISIONING'
        when ${phase} in (${SHOWN_AS_THEY_ARE.map((shown) => `'${shown}'`).join(", ")}) then ${phase}
        when ${inCustomerCluster} then 'IN_SERVICE'
        when ${phase} = 'FACTORY_READY' then 'FACTORY_READY'
        else 'READY' end`;

/** Conditions that are shown beside the effective state, the gravest first. */
export const BANNERS = ["NeedsIntervention", "Degraded"] as const satisfies readonly ConditionType[];
export type Banner = (typeof BANNERS)[number];

export const bannersOf = (conditions: readonly ObservedCondition[]): Banner[] =>
  BANNERS.filter((type) => holds(conditions, type));

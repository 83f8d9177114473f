import type { Cause } from "../../kernel/causes.ts";

/** What is known to be true or false of a machine, as the specification names it. */
export const CONDITION_TYPES = [
  "Reachable",
  "BMCReachable",
  "Provisioned",
  "InCustomerCluster",
  "Drained",
  "Degraded",
  "NeedsIntervention",
] as const;
export type ConditionType = (typeof CONDITION_TYPES)[number];

/** What somebody saw, or what the end of a run means. */
export interface ObservedCondition {
  readonly type: ConditionType;
  readonly status: boolean;
  /** Why, in one PascalCase word, such as RunFailed. */
  readonly reason: string;
  /** Why, for people; empty when the reason says it all. */
  readonly message: string;
  /** What is wrong, for programs; absent where nothing is. */
  readonly cause?: Cause;
}

export interface DatedObservation extends ObservedCondition {
  /** When it was seen. Absent: now. */
  readonly at?: Date | undefined;
}

export interface Condition extends ObservedCondition {
  /** When the status last flipped. */
  readonly lastTransition: Date;
}

/** Of each type at most one; one that was never checked is not there, and counts as false. */
export type Conditions = readonly Condition[];

export const holds = (conditions: readonly ObservedCondition[], type: ConditionType): boolean =>
  conditions.some((condition) => condition.type === type && condition.status);

/**
 * The conditions after an observation, in the order of `CONDITION_TYPES`. The time changes only when the status flips: a new
 * reason for the same is no transition. The very same array comes back when nothing differs, so that nothing need be written.
 */
export function observe(conditions: Conditions, observed: readonly DatedObservation[], now: Date): Conditions {
  const known = new Map(conditions.map((condition) => [condition.type, condition]));
  let changed = false;
  for (const { type, status, reason, message, cause, at = now } of observed) {
    const before = known.get(type);
    const isSame = before?.status === status && before.reason === reason && before.message === message;
    if (isSame && before.cause?.code === cause?.code) continue;
    changed = true;
    const lastTransition = before?.status === status ? before.lastTransition : at;
    known.set(type, { type, status, reason, message, lastTransition, ...(cause && { cause }) });
  }
  if (!changed) return conditions;
  return CONDITION_TYPES.flatMap((type) => known.get(type) ?? []);
}

import type { ConditionType, ObservedCondition } from "./conditions.ts";
import { bannersOf } from "./effective-state.ts";
import type { MachinePhase } from "./machine.ts";

/** What it depends on whether a machine is failing, and nothing else. */
export interface FailingInput {
  readonly phase: MachinePhase;
  readonly conditions: readonly ObservedCondition[];
}

/** Reasons for not being reached that somebody wants: no endpoint was given, or the machine was powered off on purpose. */
export const EXCUSES = ["NoEndpoint", "OffOnPurpose"] as const;

/** Conditions that are to hold of a machine; where nobody has looked, nothing is wrong. */
export const SHOULD_HOLD = ["Reachable", "BMCReachable"] as const satisfies readonly ConditionType[];

/**
 * Somebody is needed, or it is not reached although it should be: one that is away for repair need not answer. Of a retired machine
 * nobody is asked for anything any more. Its twin in SQL is the column `machines.failing`; a test compares them.
 */
export function isFailing({ phase, conditions }: FailingInput): boolean {
  if (phase === "RETIRED") return false;
  if (bannersOf(conditions).length > 0) return true;
  return phase !== "RMA" && SHOULD_HOLD.some((type) => isKnownNotToHold(conditions, type));
}

const isKnownNotToHold = (conditions: readonly ObservedCondition[], type: ConditionType): boolean =>
  conditions.some(
    (condition) =>
      condition.type === type && !condition.status && !EXCUSES.some((excuse) => excuse === condition.reason),
  );

/** The words of the filter. */
export const FAILING_WORDS = ["true", "false"] as const;

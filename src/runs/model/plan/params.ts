import type { StepKind } from "./payloads.ts";
import type { Plan } from "./plan.ts";

/**
 * What each kind of step takes of the params of a run. Arguments of scripts are the plan's own: nobody who starts a run changes what
 * a script is told.
 */
export const PARAMS = {
  ssh: [],
  reboot: ["force"],
  netboot: [],
  repave: [],
  join: [],
  verify: [],
  net: ["action", "netplan", "ssh_address", "rollback_seconds"],
  rma: ["ticket"],
} as const satisfies Record<StepKind, readonly string[]>;

/** The names of all params that some step of the plan takes. */
export function paramsOf(plan: Pick<Plan, "steps">): string[] {
  const byKind: Readonly<Record<string, readonly string[]>> = PARAMS;
  return [...new Set(plan.steps.flatMap(({ kind }) => (Object.hasOwn(byKind, kind) ? (byKind[kind] ?? []) : [])))];
}

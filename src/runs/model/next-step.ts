import type { Cause } from "../../kernel/causes.ts";
import type { Plan } from "./plan/plan.ts";
import { isDone, type StepStatus } from "./run.ts";

/** What an executor does next. */
export type NextStep =
  /** Work on the step at this place of the plan; `visit` is its entry among the statuses, absent when it needs a new one. */
  | { readonly type: "run"; readonly index: number; readonly visit?: number; readonly round?: number }
  /** The step is not needed: its visit is over before it began. */
  | { readonly type: "skip"; readonly index: number; readonly round: number; readonly why: string }
  | { readonly type: "finished" }
  /** Without a reason: with that of the visit. */
  | {
      readonly type: "failed";
      readonly index: number;
      readonly visit?: number;
      readonly why?: string;
      readonly needsPerson?: boolean;
      /** Absent: that of the visit. */
      readonly cause?: Cause;
    }
  /** The recorded steps do not match the plan: a fault of our own, which no further pass mends. */
  | { readonly type: "misfit"; readonly index: number; readonly why: string };

export type Visit = Pick<StepStatus, "name" | "round" | "state" | "cause" | "verdict" | "carriedOver">;

/** Strictly in order, the first failure is the end; what is to be done again comes before what is not reached yet. */
export function nextInPlan({ planId, steps }: Plan, visits: readonly Pick<Visit, "name" | "state">[]): NextStep {
  if (visits.length > steps.length) {
    const why = `a run of ${planId} has ${visits.length} step statuses, but the plan has ${steps.length} steps`;
    return { type: "misfit", index: steps.length - 1, why };
  }
  for (const [index, step] of steps.entries()) {
    const visit = visits[index];
    if (visit === undefined) return { type: "run", index };
    if (visit.name !== step.name) {
      const why = `a run of ${planId} has the status of ${visit.name} where that of ${step.name} belongs`;
      return { type: "misfit", index, why };
    }
    const later = visits.slice(index + 1).find(({ state }) => state === "RUNNING" || state === "FAILED");
    if (!isDone(visit) && later !== undefined) {
      const why = `a run of ${planId} has reached ${later.name} although ${step.name} is ${visit.state}`;
      return { type: "misfit", index, why };
    }
    if (visit.state === "FAILED") return { type: "failed", index, visit: index };
    if (!isDone(visit)) return { type: "run", index, visit: index };
  }
  return { type: "finished" };
}

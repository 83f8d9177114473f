import type { Plan } from "./plan.ts";
import type { StepStatus } from "./run.ts";

/** What an executor does next. */
export type NextStep =
  /** Work on the step at this place of the plan; `visit` is its entry among the statuses, absent when it needs a new one. */
  | { readonly type: "run"; readonly index: number; readonly visit?: number }
  | { readonly type: "finished" }
  | { readonly type: "failed"; readonly index: number; readonly visit: number }
  /** What has been is nothing that the plan leads to: a fault of our own, which no further look mends. */
  | { readonly type: "misfit"; readonly index: number; readonly why: string };

export type Visit = Pick<StepStatus, "name" | "state">;

/**
 * Answers what is next from what was planned and what has been, and from nothing else: so that any replica, after any crash,
 * answers the same. A plan answers "the one after"; workflows answer in their own way.
 */
export type ChooseNextStep = (plan: Plan, visits: readonly Visit[]) => NextStep;

/** Strictly in order, the first failure is the end; what is to be done again comes before what is not reached yet. */
export const nextInPlan: ChooseNextStep = ({ planId, steps }, visits) => {
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
    if (visit.state !== "SUCCEEDED" && later !== undefined) {
      const why = `a run of ${planId} has reached ${later.name} although ${step.name} is ${visit.state}`;
      return { type: "misfit", index, why };
    }
    if (visit.state === "FAILED") return { type: "failed", index, visit: index };
    if (visit.state !== "SUCCEEDED") return { type: "run", index, visit: index };
  }
  return { type: "finished" };
};

import type { JsonObject } from "../kernel/lifecycle.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import type { Plan, Step } from "./plan.ts";
import type { AnyStep } from "./step.ts";
import { clusterNameOf } from "./targets.ts";

export interface ResolvedFor {
  readonly machine: Machine;
  /** What the caller of StartRun gave. */
  readonly params: Readonly<Record<string, string>>;
  readonly steps: ReadonlyMap<string, Pick<AnyStep, "takesParams">>;
}

/**
 * The plan as it is carried out on this machine: which cluster is meant and what the caller gave are settled when the run is
 * started, so that what was checked then is what is done later, whatever the machine's spec says by that time.
 */
export const resolvePlan = (plan: Plan, { machine, params, steps }: ResolvedFor): Plan => ({
  ...plan,
  steps: plan.steps.map((step): Step => {
    const taken = steps.get(step.kind)?.takesParams?.(step.payload, params) ?? step.payload;
    return { ...step, payload: withCluster(taken, machine) };
  }),
});

function withCluster(payload: JsonObject, machine: Machine): JsonObject {
  const { cluster_ref: cluster } = payload;
  return typeof cluster === "string" ? { ...payload, cluster_ref: clusterNameOf(cluster, machine) } : payload;
}

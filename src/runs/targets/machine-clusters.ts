import type { JsonObject } from "../../kernel/lifecycle.ts";
import { type Machine, ownClusterOf, targetClusterOf } from "../../lifecycles/machine/machine.ts";
import type { Step } from "../model/plan/plan.ts";
import type { StepKinds } from "./target-kind.ts";

/**
 * Names the cluster of payloads that leave it open. At each step it is the one that the machine is in by then, until the plan makes
 * its system anew or joins it to one. A join that names none is to the one that the owner says, wherever the machine is.
 */
export function settlingClusters(machine: Machine, steps: StepKinds): (step: Step) => JsonObject {
  const target = targetClusterOf(machine);
  let own = ownClusterOf(machine);
  return ({ kind: word, payload }) => {
    const { replacesSystem, joinsCluster } = steps.get(word) ?? {};
    if (replacesSystem) own = target;
    const { cluster_ref: named } = payload;
    if (typeof named !== "string") return payload;
    const cluster = named || (joinsCluster ? target : own);
    if (joinsCluster) own = cluster;
    return { ...payload, cluster_ref: cluster };
  };
}

import type { JsonObject } from "../../../kernel/lifecycle.ts";
import type { FleetNode } from "../../../lifecycles/fleet-node/fleet-node.ts";
import type { FleetPolicy } from "../../../lifecycles/fleet-node/policy.ts";
import type { Plan } from "../../model/plan/plan.ts";
import type { StepShapes } from "../../model/step.ts";
import { planOfWorkflow, type Workflow } from "../workflow.ts";
import type { DecommissionParam } from "./words.ts";

export interface FleetJob {
  readonly workflow: Workflow;
  readonly node: Pick<FleetNode, "mode">;
  /** As the profile has it now: a change of the profile is for jobs that start after it. */
  readonly policy: FleetPolicy;
  /** Of a decommission; absent for an onboarding. */
  readonly mode?: DecommissionParam;
}

/** The parameters of the run: what the workflow's choice of stages goes by, beside the policy. */
export const paramsOfJob = ({ node, mode }: Pick<FleetJob, "node" | "mode">): Readonly<Record<string, string>> => ({
  node_mode: node.mode,
  ...(mode !== undefined && { mode }),
});

/** Every stage is given the whole policy, and its kind of step takes from it what it needs. */
export function planOfJob({ workflow, node, policy, mode }: FleetJob, steps: StepShapes): Plan {
  const given: JsonObject = { policy: { ...policy }, node_mode: node.mode, ...(mode !== undefined && { mode }) };
  return planOfWorkflow(workflow, steps, {
    payloads: Object.fromEntries(workflow.stages.map(({ name }) => [name, given])),
  });
}

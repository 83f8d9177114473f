import { listMachines } from "../../store/machine/machines.ts";
import { readStepDurations, type StepDuration } from "../../store/run/step-durations.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { getRun } from "../run/read.ts";

export interface UsualDuration extends StepDuration {
  /** The name of the step in the plan. */
  readonly step: string;
}

/** How long the steps of a run usually take. Of a run that is on no machine nothing is known. */
export async function listUsualDurations(deps: ServiceDeps, runId: string): Promise<readonly UsualDuration[]> {
  const { lists = deps.db } = deps;
  const { machineId, plan } = await getRun(deps, runId);
  const [machine] = machineId === null ? [] : await listMachines(lists, { ids: [machineId] });
  if (machine === undefined) return [];
  const durationOf = await readStepDurations(lists, { planId: plan.planId, provider: machine.spec.provider });
  return plan.steps.flatMap((step) => {
    const usual = durationOf(step);
    return usual === undefined ? [] : [{ step: step.name, ...usual }];
  });
}

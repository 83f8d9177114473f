import type { Capability } from "../capabilities/provider.ts";
import { AppError } from "../kernel/errors.ts";
import { parseMachineId } from "../kernel/ids.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import type { Plan, Step } from "../runs/plan.ts";
import { resolvePlan } from "../runs/resolve-plan.ts";
import { chooseRunType, type RunType } from "../runs/run-types.ts";
import { capabilitiesFor } from "../runs/step.ts";
import type { Queryable } from "../store/database.ts";
import { machineStore } from "../store/machines.ts";
import { listRuns } from "../store/runs.ts";
import type { RunDeps, StartRun } from "./runs.ts";

/** What StartRun and PreviewRun find in the same order, so that a preview refuses exactly what a start would. */

export function checkMachineId(text: string): string {
  if (text === "") throw new AppError("invalid_argument", "machine_id: is required", { field: "machine_id" });
  return parseMachineId(text, "machine_id");
}

export interface ChosenRun {
  readonly type: RunType | "";
  readonly machine: Machine;
  /** As it would be frozen into the run. */
  readonly plan: Plan;
}

/** Type, then plan, then machine: the first that is wrong is the answer. Who starts a run finds the plan under its lock. */
export async function chooseRun<Db extends Queryable>(
  db: Db,
  input: Omit<StartRun, "requestId">,
  { steps, findPlan }: Pick<RunDeps, "steps"> & { readonly findPlan: (db: Db, id: string) => Promise<Plan> },
): Promise<ChosenRun> {
  const { type, planId } = chooseRunType(input);
  const plan = await findPlan(db, planId);
  const [machine] = (await machineStore.load(db, [input.machineId])).things;
  if (!machine)
    throw new AppError("not_found", `machine ${input.machineId} does not exist`, { next: "millwright machine list" });
  return { type, machine, plan: resolvePlan(plan, { machine, params: input.params, steps }) };
}

/** Why the machine cannot have a run at this moment; what StartRun would answer is the first. */
export async function findMomentConflicts(db: Queryable, machine: Machine): Promise<AppError[]> {
  const retired =
    machine.state.name === "RETIRED"
      ? [new AppError("failed_precondition", `machine ${machine.id} is RETIRED: nothing can be done with it`)]
      : [];
  const active = (await listRuns(db, { machineId: machine.id, activeOnly: true })).map(
    ({ id }) =>
      new AppError("failed_precondition", `machine ${machine.id} has an active run, ${id}: wait for it or cancel it`, {
        next: `millwright run show ${id}`,
      }),
  );
  return [...retired, ...active];
}

export async function checkMoment(db: Queryable, machine: Machine): Promise<void> {
  const [conflict] = await findMomentConflicts(db, machine);
  if (conflict) throw conflict;
}

/** All without which the step is impossible; a kind that the server does not know counts as a capability that nobody has. */
export function needsOf(deps: Pick<RunDeps, "steps">, step: Step): readonly (Capability | string)[] {
  const kind = deps.steps.get(step.kind);
  return kind ? capabilitiesFor(kind, step.payload) : [step.kind];
}

export function checkCapabilities(deps: RunDeps, machine: Machine, plan: Plan): void {
  const can: ReadonlySet<string> = deps.capabilitiesOf(machine.spec);
  for (const step of plan.steps) {
    const missing = needsOf(deps, step).filter((capability) => !can.has(capability));
    if (missing.length > 0) {
      throw new AppError(
        "unsupported",
        `step ${step.name} needs ${missing.join(", ")}, which provider ${machine.spec.provider} cannot do: choose another plan`,
      );
    }
  }
}

import type { Capability } from "../capabilities/provider.ts";
import { AppError } from "../kernel/errors.ts";
import { parseMachineId } from "../kernel/ids.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import type { Plan, Step } from "../runs/plan.ts";
import { resolvePlan } from "../runs/resolve-plan.ts";
import { chooseRunType, type RunType } from "../runs/run-types.ts";
import { capabilitiesFor } from "../runs/step.ts";
import { IMAGE_NEEDS } from "../runs/targets.ts";
import type { Queryable } from "../store/database.ts";
import { type ImageKind, listImages } from "../store/images.ts";
import type { RunDeps, StartRun } from "./runs.ts";

/** What StartRun and PreviewRun find in the same order, so that a preview refuses exactly what a start would. */

export function checkMachineId(text: string): string {
  if (text === "") throw new AppError("invalid_argument", "machine_id: is required", { field: "machine_id" });
  return parseMachineId(text, "machine_id");
}

const PARAM_LIMITS = { entries: 64, nameLength: 128, valueLength: 16_384 } as const;

/** They are frozen into the run, and travel with everything that is told of it. */
function checkParams(params: Readonly<Record<string, string>>): void {
  const refuse = (field: string, why: string) => new AppError("invalid_argument", `${field}: ${why}`, { field });
  const entries = Object.entries(params);
  const { entries: most, nameLength, valueLength } = PARAM_LIMITS;
  if (entries.length > most) throw refuse("params", `must have at most ${most} entries, got ${entries.length}`);
  for (const [name, value] of entries) {
    if (name.length > nameLength) throw refuse("params", `names must have at most ${nameLength} characters`);
    if (value.length > valueLength) throw refuse(`params.${name}`, `must have at most ${valueLength} characters`);
  }
}

export interface ChosenRun {
  readonly type: RunType | "";
  readonly machine: Machine;
  /** As it would be frozen into the run. */
  readonly plan: Plan;
}

/** Where a run to be is looked up. Who starts one finds the plan, and the machine, under its lock. */
export interface RunSources extends Pick<RunDeps, "steps"> {
  findPlan(id: string): Promise<Plan>;
  findMachine(id: string): Promise<Machine | undefined>;
}

/** Type, then plan, then machine: the first that is wrong is the answer. */
export async function chooseRun(input: Omit<StartRun, "requestId">, sources: RunSources): Promise<ChosenRun> {
  const { type, planId } = chooseRunType(input);
  checkParams(input.params);
  const plan = await sources.findPlan(planId);
  const machine = await sources.findMachine(input.machineId);
  if (!machine)
    throw new AppError("not_found", `machine ${input.machineId} does not exist`, { next: "millwright machine list" });
  return { type, machine, plan: resolvePlan(plan, { machine, params: input.params, steps: sources.steps }) };
}

/** Why the machine cannot have a run at this moment; what StartRun would answer is the first. */
export function findMomentConflicts({ id, state, activeRunId }: Machine): AppError[] {
  const conflicts: AppError[] = [];
  if (state.name === "RETIRED")
    conflicts.push(new AppError("failed_precondition", `machine ${id} is RETIRED: nothing can be done with it`));
  if (activeRunId !== null) {
    const why = `machine ${id} has an active run, ${activeRunId}: wait for it or cancel it`;
    conflicts.push(new AppError("failed_precondition", why, { next: `millwright run show ${activeRunId}` }));
  }
  return conflicts;
}

export function checkMoment(machine: Machine): void {
  const [conflict] = findMomentConflicts(machine);
  if (conflict) throw conflict;
}

/** Of the images that there are, by their names. */
export type KindsOfImages = (names: readonly string[]) => Promise<ReadonlyMap<string, ImageKind>>;

export const imagesIn =
  (db: Queryable): KindsOfImages =>
  async (names) =>
    new Map((await listImages(db, { names })).map(({ name, kind }) => [name, kind]));

/**
 * All without which each step is impossible, also for what the images that it names are installed with; a kind that the server
 * does not know counts as a capability that nobody has.
 */
export async function findNeeds(
  kindsOf: KindsOfImages,
  { steps }: Pick<RunDeps, "steps">,
  plan: Pick<Plan, "steps">,
): Promise<ReadonlyMap<Step, readonly (Capability | string)[]>> {
  const imagesOf = ({ kind, payload }: Step) =>
    (steps.get(kind)?.refersTo(payload) ?? []).filter((reference) => reference.kind === "image").map(({ ref }) => ref);
  const names = plan.steps.flatMap(imagesOf);
  const kinds = names.length === 0 ? new Map<string, ImageKind>() : await kindsOf(names);
  return new Map(
    plan.steps.map((step) => {
      const kind = steps.get(step.kind);
      const forImages = imagesOf(step).map((ref) => IMAGE_NEEDS[kinds.get(ref) ?? "iso"]);
      return [step, kind ? [...new Set([...forImages, ...capabilitiesFor(kind, step.payload)])] : [step.kind]];
    }),
  );
}

export async function checkCapabilities(
  kindsOf: KindsOfImages,
  deps: RunDeps,
  machine: Machine,
  plan: Plan,
): Promise<void> {
  const can: ReadonlySet<string> = deps.capabilitiesOf(machine.spec);
  for (const [step, needs] of await findNeeds(kindsOf, deps, plan)) {
    const missing = needs.filter((capability) => !can.has(capability));
    if (missing.length > 0) {
      throw new AppError(
        "unsupported",
        `step ${step.name} needs ${missing.join(", ")}, which provider ${machine.spec.provider} cannot do: choose another plan`,
      );
    }
  }
}

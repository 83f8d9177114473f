import { StepFailure } from "../../kernel/errors.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import type { Step } from "../model/plan/plan.ts";
import type { StepContext } from "../model/step.ts";
import type { StepTargets } from "../model/targets.ts";
import { isReplacedAfter } from "./machine.ts";
import type { RunOn, StepKinds } from "./target-kind.ts";

/** What steps on machines are given beside what all steps are. */
export type MachineStepParts = Pick<
  StepContext<unknown>,
  "machine" | "targets" | "isReplacedNext" | "installsNext" | "installerSeen" | "mediumRefused"
>;

export const machineStepParts = (
  run: RunOn<Machine>,
  step: Step,
  { targets, steps }: { readonly targets: StepTargets; readonly steps: StepKinds },
): MachineStepParts => ({
  machine: run.target.thing,
  targets: { ...targets, script: frozenScripts(run, targets) },
  isReplacedNext: isReplacedAfter(step, run.plan.steps, steps),
  installsNext: imageAfter(step, run.plan.steps, steps),
  installerSeen: run.installerSeen ?? null,
  mediumRefused: run.mediumRefused ?? null,
});

/** The first image that a step after this one installs. */
function imageAfter({ name }: Step, all: readonly Step[], steps: StepKinds): string | null {
  const after = all.slice(all.findIndex((step) => step.name === name) + 1);
  const images = after.flatMap(({ kind, payload }) => {
    const definition = steps.get(kind);
    return definition?.replacesSystem ? definition.refersTo(payload) : [];
  });
  return images.find(({ kind }) => kind === "image")?.ref ?? null;
}

/** A script that changed since the run was started is not the one that its caller asked for. */
const frozenScripts =
  ({ facts: { scripts } }: RunOn<Machine>, targets: StepTargets): StepTargets["script"] =>
  async (ref) => {
    const frozen = scripts[ref];
    const found = await targets.script(ref, frozen);
    if (frozen === undefined || frozen === found.digest) return found;
    throw new StepFailure(
      "script_changed",
      `script ${ref} is ${found.digest} now, but was ${frozen} when this run was started; start a new run`,
      {
        facts: { script: ref },
      },
    );
  };

import type { Install, InstallStep, StepState } from "./install.ts";
import { stepsToRun, type Workflow } from "./workflow.ts";

/** What the environment tells of one step. */
export type StepReport = {
  readonly sequence: number;
  readonly state: StepState;
  readonly attempt: number;
  readonly message: string | null;
};

const OVER: ReadonlySet<StepState> = new Set(["completed", "skipped"]);
export const isOver = ({ state }: Pick<InstallStep, "state">): boolean => OVER.has(state);

/** The steps of an attempt that begins: none is begun. */
export function freshSteps(workflow: Pick<Workflow, "boot" | "steps">): readonly InstallStep[] {
  const steps = stepsToRun(workflow);
  const last = steps.findIndex(({ next_state }) => next_state !== null);
  return steps.map(({ sequence, name, type }, index) => ({
    sequence,
    name,
    type,
    state: "pending",
    attempts: 0,
    message: null,
    required: last === -1 || index <= last,
  }));
}

/** It boots again because a step said so, and goes on behind that step. */
export const isRebooting = ({ facts }: Pick<Install, "facts">): boolean =>
  facts.steps.some(({ state }) => state === "rebooting");

/** The boot that a step asked for is there: that step is over. */
export const afterReboot = (steps: readonly InstallStep[]): readonly InstallStep[] =>
  steps.map((step) => (step.state === "rebooting" ? { ...step, state: "completed" } : step));

/** A step that is not among those of this boot is nobody's: nothing changes. What is over stays so, however late a report arrives. */
export const withReport = (steps: readonly InstallStep[], { sequence, state, attempt, message }: StepReport) =>
  steps.map(
    (step): InstallStep =>
      step.sequence !== sequence || (isOver(step) && state !== "rolled_back")
        ? step
        : { ...step, state, attempts: Math.max(step.attempts, attempt), message: message ?? step.message },
  );

/** Why an installation that is reported complete is not; undefined when it is. An environment of before steps never reports any. */
export function whyIncomplete(steps: readonly InstallStep[]): string | undefined {
  const missing = steps.filter((step) => step.required && !isOver(step));
  if (missing.length === 0) return undefined;
  const names = missing.map(({ sequence, name }) => `${sequence} (${name})`).join(", ");
  return `complete was reported, but not the steps ${names}: build its environment again with this version`;
}

/** For people: the step that is under way. */
export function describeStep(steps: readonly InstallStep[]): string | undefined {
  const at = steps.findIndex(({ state }) => state !== "pending" && !OVER.has(state));
  const step = steps[at];
  if (step === undefined) return undefined;
  const what = `step ${at + 1} of ${steps.length} (${step.name}) is ${step.state.replace("_", " ")}`;
  return step.attempts > 1 ? `${what}, try ${step.attempts}` : what;
}

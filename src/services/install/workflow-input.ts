import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import {
  isOurEnvironment,
  type Workflow,
  type WorkflowBoot,
  type WorkflowStep,
} from "../../lifecycles/install/workflow.ts";
import { bootInputSchema } from "../../store/install/workflow-schema.ts";
import { readStepConfig } from "./step-config.ts";

/** A workflow as callers give it: what it boots may be said by a step. */
export interface WorkflowInput extends Omit<Workflow, "id" | "boot" | "nextState"> {
  readonly boot?: WorkflowBoot | undefined;
  readonly nextState?: Workflow["nextState"] | undefined;
}

/** A workflow that somebody will carry out, all of it; throws for every other. */
export function readWorkflow(input: WorkflowInput): Omit<Workflow, "id"> {
  checkSequences(input.steps);
  const bootAt = onlyOne(
    input.steps,
    ({ type }) => type === "boot",
    "is of type boot, as another is: a machine boots one thing",
  );
  const stateAt = onlyOne(
    input.steps,
    ({ next_state }) => next_state !== null,
    "has a next_state, as another has: an installation is complete once",
  );
  const boot = bootOf(input, bootAt);
  const others = input.steps.filter(({ type }) => type !== "boot");
  if (others.length > 0 && !isOurEnvironment(boot)) refuseUnrun(boot);
  const steps = input.steps.map((step, index) => ({ ...step, config: configOf(step, index) }));
  return { ...input, boot, steps, nextState: nextStateOf(input, stateAt) };
}

const refused = (field: string, why: string): AppError =>
  new AppError("failed_precondition", `${field}: ${why}`, { field });
const invalid = (field: string, why: string): AppError =>
  new AppError("invalid_argument", `${field}: ${why}`, { field });

function checkSequences(steps: readonly WorkflowStep[]): void {
  const seen = new Set<number>();
  for (const [index, { sequence }] of steps.entries()) {
    if (seen.has(sequence)) throw refused(`steps[${index}].sequence`, `${sequence} is used twice`);
    seen.add(sequence);
  }
}

function onlyOne(steps: readonly WorkflowStep[], isIt: (step: WorkflowStep) => boolean, why: string): number {
  const [first = -1, second] = steps.flatMap((step, index) => (isIt(step) ? [index] : []));
  if (second !== undefined) throw refused(`steps[${second}]`, why);
  return first;
}

/** Without a word on the method: by what else is said. */
const methodOf = (config: JsonObject): string => {
  if ("image_url" in config || "image_digest" in config) return "image";
  if ("source_url" in config) return "clone";
  if ("chain_url" in config) return "chain";
  return "iso_url" in config ? "sanboot" : "kernel";
};

function bootOf({ boot, steps }: WorkflowInput, at: number): WorkflowBoot {
  const config = steps[at]?.config ?? {};
  if (boot !== undefined) {
    if (Object.keys(config).length > 0)
      throw refused(`steps[${at}].config`, "what is booted is said twice; boot says it already");
    return boot;
  }
  if (at === -1) throw invalid("boot", "is needed, or a step of type boot whose config says what is booted");
  const read = bootInputSchema.safeParse({ method: methodOf(config), ...config });
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw invalid([`steps[${at}].config`, ...(issue?.path ?? [])].join("."), issue?.message ?? "is wrong");
}

function configOf(step: WorkflowStep, index: number): JsonObject {
  if (step.type === "boot") return {};
  const read = readStepConfig(step);
  if (!Array.isArray(read)) return read;
  const [fault] = read;
  throw invalid([`steps[${index}].config`, ...(fault?.path ?? [])].join("."), fault?.message ?? "is wrong");
}

function refuseUnrun({ method }: WorkflowBoot): never {
  const how =
    method === "kernel"
      ? "set boot.environment to true if kernel_url is the kernel of `millwright netboot environment`"
      : "use boot.method image, clone, or kernel with environment: true";
  throw refused(
    "steps",
    `nobody would run them: with boot.method ${method} the machine boots something of yours; ${how}`,
  );
}

/** What a step says and what the workflow says must agree. */
function nextStateOf({ nextState, steps }: WorkflowInput, at: number): Workflow["nextState"] {
  const said = steps[at]?.next_state ?? undefined;
  if (said !== undefined && nextState !== undefined && said !== nextState)
    throw refused(`steps[${at}].next_state`, `is ${said}, and next_state of the workflow is ${nextState}`);
  return said ?? nextState ?? "installed";
}

import { AppError } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/lifecycle.ts";
import { type Duration, seconds } from "../../../kernel/time/duration.ts";
import { STEP_DEFAULTS, type StepShape, type StepShapes } from "../step.ts";
import { type Payloads, parsePayload, type StepKind } from "./payloads.ts";

/** A step as a caller or a file spells it. */
export interface StepInput {
  readonly name: string;
  /** 0 and not given: the default of the kind. */
  readonly timeoutSeconds?: number | undefined;
  /** Not given: the default of the kind. 0 is none. */
  readonly maxRetries?: number | undefined;
  /** Undefined for a step whose kind is missing or one that the contract does not know. */
  readonly kind: string | undefined;
  readonly payload: JsonObject;
}

export interface PlanInput {
  readonly planId: string;
  readonly displayName: string;
  readonly steps: readonly StepInput[];
}

/** A step with nothing left open. Plain JSON, like all of a plan: a run keeps it as it was. */
export interface Step {
  readonly name: string;
  readonly kind: string;
  /** For one attempt. */
  readonly timeoutSeconds: number;
  /** Attempts after the first one. */
  readonly maxRetries: number;
  /** As the kind's `parse` returned it. */
  readonly payload: JsonObject;
}

export interface Plan {
  readonly planId: string;
  readonly displayName: string;
  readonly steps: readonly Step[];
  /** The workflow that says what comes after each step. Absent: the step after it. */
  readonly workflow?: string;
  /** The run is not begun while somebody uses the machine. */
  readonly unlessInUse?: true;
}

export const PLAN_LIMITS = {
  steps: 100,
  nameLength: 100,
  displayNameLength: 256,
  timeoutSeconds: 86_400,
  maxRetries: 100,
} as const;

const PLAN_ID = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$/;

/** The kinds of the specification, each with the server's defaults; a map of real steps serves as well. */
export const CORE_STEP_SHAPES: StepShapes = new Map(
  (Object.keys(parsePayload) as StepKind[]).map((kind) => [kind, shapeOf(kind)]),
);

function shapeOf<K extends StepKind>(kind: K): StepShape<K, Payloads[K]> {
  return { kind, defaults: STEP_DEFAULTS, parse: parsePayload[kind] };
}

/**
 * The plan with defaults filled in and payloads parsed.
 *
 * @throws AppError invalid_argument that names the field, such as `steps[2].netboot.mode`, for the first thing that is wrong.
 */
export function validatePlan(plan: PlanInput, shapes: StepShapes = CORE_STEP_SHAPES): Plan {
  const planId = parsePlanId(plan.planId, "plan_id");
  checkText(plan.displayName, "display_name", PLAN_LIMITS.displayNameLength);
  const { steps: most } = PLAN_LIMITS;
  if (plan.steps.length === 0 || plan.steps.length > most) {
    throw refusal("steps", `between 1 and ${most} steps are required, got ${plan.steps.length}`);
  }
  const places = new Map<string, number>();
  const steps = plan.steps.map((step, at) => {
    const valid = validateStep(step, `steps[${at}]`, shapes);
    const earlier = places.get(valid.name);
    if (earlier !== undefined) {
      const why = `${JSON.stringify(valid.name)} is already the name of steps[${earlier}]; names are unique within a plan`;
      throw refusal(`steps[${at}].name`, why);
    }
    places.set(valid.name, at);
    return valid;
  });
  return { planId, displayName: plan.displayName, steps };
}

/** Letters, digits and `. _ / -`, at most 128. */
export function parsePlanId(text: string, field: string): string {
  if (PLAN_ID.test(text)) return text;
  const shown = JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
  throw refusal(
    field,
    `${shown} is not a plan id (1 to 128 letters, digits and . _ / -, beginning with a letter or digit)`,
  );
}

export const timeoutOf = (step: Step): Duration => seconds(step.timeoutSeconds);
export const attemptsOf = (step: Step): number => 1 + step.maxRetries;

function validateStep(step: StepInput, field: string, shapes: StepShapes): Step {
  const name = step.name;
  if (name.trim() === "") throw refusal(`${field}.name`, "is required: the status of a step is found by its name");
  checkText(name, `${field}.name`, PLAN_LIMITS.nameLength);
  const shape = step.kind === undefined ? undefined : shapes.get(step.kind);
  if (shape === undefined) {
    const what = step.kind === undefined ? "has no kind" : `${JSON.stringify(step.kind.slice(0, 80))} is not a kind`;
    throw refusal(`${field}.kind`, `${what}; known: ${[...shapes.keys()].join(", ")}`);
  }
  const { timeout, maxRetries } = shape.defaults;
  const limits = PLAN_LIMITS;
  const timeoutSeconds =
    checkCount(step.timeoutSeconds ?? 0, `${field}.timeout_seconds`, limits.timeoutSeconds) || timeout / seconds(1);
  return {
    name,
    kind: shape.kind,
    timeoutSeconds,
    maxRetries: checkCount(step.maxRetries ?? maxRetries, `${field}.max_retries`, limits.maxRetries),
    payload: shape.parse(step.payload, `${field}.${shape.kind}`, timeoutSeconds),
  };
}

function checkCount(count: number, field: string, most: number): number {
  if (!Number.isInteger(count) || count < 0 || count > most) {
    throw refusal(field, `must be a whole number between 0 and ${most}, got ${count}`);
  }
  return count;
}

function checkText(text: string, field: string, most: number): void {
  if (text.length > most) throw refusal(field, `must have at most ${most} characters, got ${text.length}`);
  if (/\p{Cc}/u.test(text)) throw refusal(field, "must not contain control characters");
}

const refusal = (field: string, why: string): AppError =>
  new AppError("invalid_argument", `${field}: ${why}`, { field });

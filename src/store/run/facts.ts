import { isJsonObject, type JsonObject } from "../../kernel/lifecycle.ts";
import { parseCause } from "../../kernel/stored-cause.ts";
import type { Heard } from "../../runs/model/heard-script.ts";
import type { RunFacts, Unproven } from "../../runs/model/lifecycle.ts";
import type { LeftByStep, LeftOver } from "../../runs/model/next-attempt.ts";
import type { Plan, Step } from "../../runs/model/plan/plan.ts";
import {
  type FailedAttempt,
  RUN_ERROR_CODES,
  type RunError,
  STEP_STATES,
  type StepStatus,
} from "../../runs/model/run.ts";
import {
  type Check,
  isFlag,
  isNumber,
  isText,
  isTime,
  listOf,
  mapOf,
  oneOf,
  orNull,
  REQUIRED,
  readerOf,
  shapeOf,
} from "../postgres/stored-json.ts";

/** What runs keep as JSON. They are read at every pass. */
type Stored<T> = { readonly [K in keyof T]: Date extends T[K] ? string | null : T[K] };
interface StoredStep extends Omit<Stored<StepStatus>, "toTakeBack" | "cause" | "unansweredCause"> {
  readonly cause: unknown;
  readonly unansweredCause: unknown;
  readonly toTakeBack: StepStatus["toTakeBack"] | undefined;
}

const date = [orNull(isTime), null] as const;
const text = [orNull(isText), null] as const;
const no = [isFlag, false] as const;
const isEvidence = orNull(isJsonObject);
/** What it is not is left out by its own parser. */
const isAnything: Check<unknown> = (value): value is unknown => value !== undefined;

const isFailedAttempt = shapeOf<FailedAttempt>({
  final: isFlag,
  mayHaveActed: isFlag,
  needsPerson: isFlag,
  isRefusal: isFlag,
  isBug: isFlag,
});

/** What says nothing is not kept (`stepJson`), so that it is there by default. */
const readStep = readerOf<StoredStep>({
  name: [isText, REQUIRED],
  round: [isNumber, 1],
  kind: [isText, REQUIRED],
  state: [oneOf(STEP_STATES), REQUIRED],
  retryCount: [isNumber, REQUIRED],
  startedAt: date,
  finishedAt: date,
  message: [isText, ""],
  verdict: [isText, ""],
  cause: [isAnything, null],
  carriedOver: no,
  nextAttemptAt: date,
  attemptStartedAt: date,
  actingBy: text,
  actingAt: date,
  streamedAt: date,
  actedAt: date,
  unanswered: text,
  unansweredCause: [isAnything, null],
  evidence: [isEvidence, null],
  receipt: [isEvidence, null],
  receiptToTakeBack: [isEvidence, null],
  toTakeBack: [(value): value is StoredStep["toTakeBack"] => value === undefined || isEvidence(value), undefined],
  takenBack: no,
  resumed: no,
  needsPerson: no,
  failing: [orNull(isFailedAttempt), null],
});

const dateOf = (stored: string | null): Date | null => (stored === null ? null : new Date(stored));

function parseStep(stored: unknown): StepStatus {
  const step = readStep(stored);
  // Runs that an older server began do not say what is to be taken back: there it is whatever is being done.
  const isBeingDone = step.state === "RUNNING" && step.actingAt !== null;
  return {
    ...step,
    cause: parseCause(step.cause),
    unansweredCause: parseCause(step.unansweredCause),
    startedAt: dateOf(step.startedAt),
    finishedAt: dateOf(step.finishedAt),
    nextAttemptAt: dateOf(step.nextAttemptAt),
    attemptStartedAt: dateOf(step.attemptStartedAt),
    actingAt: dateOf(step.actingAt),
    streamedAt: dateOf(step.streamedAt),
    actedAt: dateOf(step.actedAt),
    toTakeBack: step.toTakeBack === undefined ? (isBeingDone ? step.evidence : null) : step.toTakeBack,
  };
}

const isList: Check<readonly unknown[]> = (value): value is readonly unknown[] => Array.isArray(value);
const isError = shapeOf<RunError>({
  code: oneOf(RUN_ERROR_CODES),
  message: isText,
  retryable: isFlag,
  details: mapOf(isText),
});

const isStepWithEvidence = shapeOf<Pick<LeftByStep, "step" | "evidence">>({ step: isText, evidence: isJsonObject });
const isLeftByStep: Check<LeftByStep> = (value): value is LeftByStep =>
  isStepWithEvidence(value) &&
  (!("receipt" in value) || isJsonObject(value.receipt)) &&
  (!("round" in value) || isNumber(value.round));
const areLeft = listOf(isLeftByStep);
const isLeftOver: Check<LeftOver> = (value): value is LeftOver =>
  isLeftByStep(value) && (!("more" in value) || areLeft(value.more));

const readFacts = readerOf<Omit<Stored<RunFacts>, "steps"> & { readonly steps: readonly unknown[] }>({
  scripts: [mapOf(isText), {}],
  steps: [isList, []],
  startedAt: date,
  finishedAt: date,
  error: [orNull(isError), null],
  residue: [listOf(isText), []],
  residueRecords: [listOf(isJsonObject), []],
  takeBackFirst: [orNull(isLeftOver), null],
  doneBefore: [areLeft, []],
  compensateFirst: [orNull(isLeftOver), null],
  undoingSince: date,
  unproven: [orNull(shapeOf<Unproven>({ step: isText, since: isTime })), null],
  heard: [orNull(shapeOf<Heard>({ mark: isText, stdout: isNumber, stderr: isNumber })), null],
});

export function parseRunFacts(stored: unknown): RunFacts {
  const facts = readFacts(stored);
  return {
    ...facts,
    steps: facts.steps.map(parseStep),
    startedAt: dateOf(facts.startedAt),
    finishedAt: dateOf(facts.finishedAt),
    undoingSince: dateOf(facts.undoingSince),
  };
}

/** Only what the patch says, without what is there by default. */
export function parseFactsPatch(patch: JsonObject): Partial<RunFacts> {
  return Object.fromEntries(Object.entries(parseRunFacts(patch)).filter(([name]) => name in patch));
}

const isPlanOfSteps = shapeOf<Omit<Plan, "workflow">>({
  planId: isText,
  displayName: isText,
  steps: listOf(
    shapeOf<Step>({
      name: isText,
      kind: isText,
      timeoutSeconds: isNumber,
      maxRetries: isNumber,
      payload: isJsonObject,
    }),
  ),
});

const isPlan: Check<Plan> = (value): value is Plan =>
  isPlanOfSteps(value) && (!("workflow" in value) || isText(value.workflow));

export function parseRunPlan(stored: unknown): Plan {
  if (!isPlan(stored)) throw new TypeError("its plan cannot be read");
  return stored;
}

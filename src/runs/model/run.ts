import type { Cause } from "../../kernel/causes.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { ParentStep } from "../children/child-run.ts";
import type { RunTarget } from "../targets/run-target.ts";
import type { Heard } from "./heard-script.ts";
import type { Unproven } from "./lifecycle.ts";
import type { LeftByStep, LeftOver } from "./next-attempt.ts";
import type { Plan } from "./plan/plan.ts";

/** Where a run is: PENDING, then RUNNING, then for good one of the others. */
export const RUN_PHASES = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "CANCELED"] as const;
export type RunPhase = (typeof RUN_PHASES)[number];

/** A target has at most one run of its own in one of these, and so has the run slot of a machine. */
export const ACTIVE_RUN_PHASES = ["PENDING", "RUNNING"] as const satisfies readonly RunPhase[];
export type EndedRunPhase = Exclude<RunPhase, (typeof ACTIVE_RUN_PHASES)[number]>;

export const isActive = (phase: RunPhase): boolean => phase === "PENDING" || phase === "RUNNING";

/** Where a visit to a step is. FAILED is for good: between attempts it stays RUNNING. */
export const STEP_STATES = ["WAITING", "RUNNING", "SUCCEEDED", "FAILED", "SKIPPED"] as const;
export type StepState = (typeof STEP_STATES)[number];

/** Nothing more is to be done about the step. */
export const isDone = ({ state }: { readonly state: StepState }): boolean =>
  state === "SUCCEEDED" || state === "SKIPPED";

/** A job lives as long as people work on it; each attempt at it is a run. */
export const JOB_STATES = [
  "pending",
  "running",
  "completed",
  "failed_retryable",
  "failed_manual_intervention",
  "cancelled",
  "compensating",
  "reconciled",
] as const;
export type JobState = (typeof JOB_STATES)[number];

/** How an attempt came about: by StartRun, or by what people did with the attempt before it. */
export const RUN_ACTIONS = ["start", "retry", "resume", "rerun", "restart_clean", "adopt", "cancel"] as const;
export type RunAction = (typeof RUN_ACTIONS)[number];

/** Why a medium that this server makes was not served, and of which installation (`installerMark`). */
export type MediumRefusal = {
  readonly order: string;
  readonly why: string;
};

/** That people took a failed job over. */
export interface ManualMark {
  readonly at: Date;
  readonly by: string;
  readonly comment: string;
}

export const RUN_ERROR_CODES = ["EXECUTION_FAILED", "PANIC"] as const;
export type RunErrorCode = (typeof RUN_ERROR_CODES)[number];

/** Why a run FAILED. */
export interface RunError {
  /** PANIC for a fault of our own. */
  readonly code: RunErrorCode;
  readonly message: string;
  /** Retrying may help without anybody doing something first. */
  readonly retryable: boolean;
  /** The step, the code of the cause under `cause`, and each of its facts under its own name (`causeDetails`). */
  readonly details: Readonly<Record<string, string>>;
}

/** One visit to a step; a step that was not reached has none. */
export interface StepStatus {
  readonly name: string;
  /** From 1 on: how often the job has entered the step. Steps of plans are entered once. */
  readonly round: number;
  readonly kind: string;
  readonly state: StepState;
  /** Attempts that failed so far: all of them when the step FAILED. */
  readonly retryCount: number;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  /** For people: what it waits for, why the last attempt failed, why it was skipped, or how it ended. */
  readonly message: string;
  /** Why the last attempt failed, or what is in the way of the present one; null when nothing is wrong. */
  readonly cause: Cause | null;
  /** What a step found that is there to find something; empty otherwise. */
  readonly verdict: string;
  /** An earlier run of the job had proved it. */
  readonly carriedOver: boolean;
  readonly nextAttemptAt: Date | null;
  /** When the present attempt began: its timeout counts from here. */
  readonly attemptStartedAt: Date | null;
  /** Which process announced that it acts, and when; null before. Who is forgotten once it is known to have begun without an answer. */
  readonly actingBy: string | null;
  readonly actingAt: Date | null;
  /** When the stream that the action is was last seen sending; null where the action is none. */
  readonly streamedAt: Date | null;
  /** When the action was done; from then on the step only waits for its proof. */
  readonly actedAt: Date | null;
  /** What was said instead of an answer to the action, so that it is open whether the device obeyed; null when it is not. */
  readonly unanswered: string | null;
  /** Of that, for programs. */
  readonly unansweredCause: Cause | null;
  /** What `before` returned; null until the intent is persisted. */
  readonly evidence: JsonObject | null;
  /** What the action under this evidence returned; null when that is nothing, or was never written. */
  readonly receipt: JsonObject | null;
  /** The evidence of an action that was begun, and is neither proven nor undone. */
  readonly toTakeBack: JsonObject | null;
  /** The receipt of that action. */
  readonly receiptToTakeBack: JsonObject | null;
  /** It was proven, and the run has taken it back as it ended: whoever acts after that sets it again first. */
  readonly takenBack: boolean;
  /** The evidence is an earlier run's: it can prove that the step is done, but its failure is not one of this run. */
  readonly resumed: boolean;
  /** It failed in a way that somebody has to see to. */
  readonly needsPerson: boolean;
  /** Its attempt has failed, and what that began is to be undone now; null when nothing is. */
  readonly failing: FailedAttempt | null;
}

/**
 * What an attempt that has failed means for its step, beside `message` and `cause` of the visit. It is on record before what the attempt began
 * is undone: a replica that dies over the undo leaves the reason to the next one. A type and no interface, so that it is JSON to the compiler.
 */
export type FailedAttempt = {
  /** No other attempt follows, whatever the step allows. */
  readonly final: boolean;
  /** Whether the device heard the command is open. */
  readonly mayHaveActed: boolean;
  readonly needsPerson: boolean;
  /** The device said no to the action. */
  readonly isRefusal: boolean;
  /** The fault is in the server's own code. */
  readonly isBug: boolean;
};

/** Unchanging once it has ended. */
export interface Run {
  readonly id: string;
  readonly target: RunTarget;
  /** The machine whose run slot it takes; null for runs that take none. */
  readonly machineId: string | null;
  /** Under whose claims it works: its own, unless another thing started it. */
  readonly holder: RunTarget;
  /** The step that started it; null for runs that somebody asked for. */
  readonly parent: ParentStep | null;
  readonly requestId: string;
  /** Empty when it was started by plan alone. */
  readonly type: string;
  /** As it was at the start. */
  readonly plan: Plan;
  readonly params: Readonly<Record<string, string>>;
  readonly phase: RunPhase;
  /** In the order of being reached. */
  readonly steps: readonly StepStatus[];
  readonly jobId: string;
  /** From 1 on within the job. */
  readonly attempt: number;
  readonly previousRunId: string | null;
  /** The attempt after this one; this one then no longer speaks for the job. */
  readonly nextRunId: string | null;
  readonly action: RunAction;
  readonly manual: ManualMark | null;
  readonly initiator: string;
  readonly message: string;
  readonly waitingFor: string;
  readonly error: RunError | null;
  readonly residue: readonly string[];
  /** What the attempt before left and nobody has undone yet; null when there is nothing, or it was tried. */
  readonly takeBackFirst: LeftOver | null;
  readonly doneBefore: readonly LeftByStep[];
  readonly compensateFirst: LeftOver | null;
  readonly undoingSince: Date | null;
  /** It began something whose end it could not read in time, and keeps its target until it can: the step, and since when. */
  readonly unproven: Unproven | null;
  /** How far the script that was heard last is in the logs of the job. */
  readonly heard: Heard | null;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly cancelRequestedAt: Date | null;
  readonly version: number;
}

/** The machine that the run is about, whether or not it takes the machine's run slot; null where it is about something else. */
export const machineOf = ({ machineId, target }: Pick<Run, "machineId" | "target">): string | null =>
  machineId ?? (target.kind === "machine" ? target.id : null);

/** The step that is being worked on; empty before the first and once the run has ended. */
export function currentStep({ phase, steps }: Pick<Run, "phase" | "steps">): string {
  if (!isActive(phase)) return "";
  return steps.findLast(({ state }) => state === "WAITING" || state === "RUNNING")?.name ?? "";
}

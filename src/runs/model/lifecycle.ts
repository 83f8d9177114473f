import {
  defineLifecycle,
  type Json,
  type JsonObject,
  on,
  onFailure,
  STAY,
  type Thing,
  when,
} from "../../kernel/lifecycle.ts";
import type { ResidueFacts } from "../../kernel/residue.ts";
import { hours, minutes } from "../../kernel/time/duration.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import type { ChildRun, ParentStep } from "../children/child-run.ts";
import type { LoadedTarget, RunTarget } from "../targets/run-target.ts";
import type { Heard } from "./heard-script.ts";
import type { LeftByStep, LeftOver } from "./next-attempt.ts";
import type { Plan } from "./plan/plan.ts";
import type { ManualMark, MediumRefusal, RunAction, RunError, StepStatus } from "./run.ts";

/** Its residue is what canceled and failed steps left behind and could not undo. */
export interface RunFacts extends ResidueFacts {
  /** The digests of the scripts that its plan names, as they were when it was started. */
  readonly scripts: Readonly<Record<string, string>>;
  readonly steps: readonly StepStatus[];
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly error: RunError | null;
  /** What the attempt before left, to be undone before anything else is done; null once that was tried. */
  readonly takeBackFirst: LeftOver | null;
  /** What earlier attempts at a workflow did, and `steps` does not tell: for a cancel. In the order of being done. */
  readonly doneBefore: readonly LeftByStep[];
  /** What is undone of earlier attempts at a workflow before its first stage is entered; null once that was tried. */
  readonly compensateFirst: LeftOver | null;
  /** Since when a device has been undoing a stage; null when none is. */
  readonly undoingSince: Date | null;
  /** The step whose action nobody could prove in its time, and since when the run waits for that alone; null: there is none. */
  readonly unproven: Unproven | null;
  /** Up to where what a script wrote is in the log; null before any has written. */
  readonly heard: Heard | null;
}

/** A type and no interface, so that it is JSON to the compiler. */
export type Unproven = { readonly step: string; readonly since: string };

/** A run as the executor sees it: with the thing that it works on. */
export interface RunThing extends Thing {
  /** As callers name it: REPAVE, or that of its workflow. Absent in what is loaded for tests alone. */
  readonly type?: string;
  readonly target: LoadedTarget;
  /** The step that started it; null for runs that somebody asked for. */
  readonly parent: ParentStep | null;
  /**
   * On whose behalf it works, and under whose claims: its own, that of the thing that started it (a rack), or that of its parent.
   * It never waits for them.
   */
  readonly holder: RunTarget;
  /** The runs that its own steps have started. */
  readonly children: readonly ChildRun[];
  readonly jobId: string;
  readonly plan: Plan;
  readonly params: Readonly<Record<string, string>>;
  readonly action: RunAction;
  readonly cancelRequestedAt: Date | null;
  /** After a restored backup: the run ends, and no device is touched for it. Absent or null: it goes on. */
  readonly abandonedAt?: Date | null;
  /** People have taken the job over: the run ends before its next step. */
  readonly manual: ManualMark | null;
  /** Which installer has said last that it has begun (`installerMark`); absent or null: none. */
  readonly installerSeen?: string | null;
  /** Absent or null: none was. */
  readonly mediumRefused?: MediumRefusal | null;
  readonly facts: RunFacts;
}

/** The thing that started it, such as a rack, waits for its end: only the executor ends it together with what that means there. */
const isAwaited = ({ parent, holder }: RunThing) => parent === null && holder.kind !== "run";
/** Its target follows how it ends, also where it never began. */
const isFollowed = ({ target }: RunThing) => target.kind === fleetNodeLifecycle.kind;

/** A run that undoes an earlier attempt is begun for nothing else. So is one that is canceled before it began, where its job has done something. */
const isThereToUndo = ({ action, plan, facts }: RunThing) =>
  action === "cancel" ||
  (plan.workflow !== undefined &&
    (facts.steps.length > 0 ||
      facts.doneBefore.length > 0 ||
      facts.compensateFirst !== null ||
      facts.takeBackFirst !== null));
const isCanceledUnbegun = (run: RunThing) => run.cancelRequestedAt !== null && !isThereToUndo(run) && !isAwaited(run);
const cancelRequested = (run: RunThing) => isCanceledUnbegun(run) && !isFollowed(run);
/** Only the executor ends it, with what that means for its target, and without the claims that it never got. */
export const endsUnbegun = (run: RunThing): boolean => isCanceledUnbegun(run) && isFollowed(run);
const takenOver = (run: RunThing) => run.manual !== null;
const takenOverFirst = ({ manual }: RunThing): JsonObject => ({
  error: {
    code: "EXECUTION_FAILED",
    message: `${manual?.by} took the job over before it began: ${manual?.comment}`,
    retryable: false,
    details: {},
  },
});

/** Somebody began to use what the run would disturb between its request and its turn. Whoever asked is told, and asks again. */
const cameIntoUse = ({ outcome }: RunThing) => outcome?.cause?.code === "in_use";
const disturbs = ({ outcome }: RunThing): JsonObject => ({
  error: {
    code: "EXECUTION_FAILED",
    message: `not begun: ${outcome?.reason}`,
    retryable: true,
    details: { cause: "in_use", ...outcome?.cause?.facts },
  },
});

/**
 * The run's phases. A run that waits for the claim on its target is PENDING; once it is RUNNING it holds the claim. What start and
 * end mean for the target (`TargetKind`) is written in the same commits.
 */
export const runLifecycle = defineLifecycle<RunThing>()({
  kind: "run",
  initial: "PENDING",
  // What a step noted before it acted may be what only its machine is to know.
  listFacts: {
    steps: { untold: ["evidence", "receipt", "toTakeBack", "receiptToTakeBack", "failing"], counted: "round" },
  },
  // takeBackFirst holds the same; how far a script was heard changes all the time; the lines of `residue` are told.
  quietFacts: ["takeBackFirst", "doneBefore", "compensateFirst", "heard", "residueRecords"],

  // biome-ignore format: a table is read by its columns
  states: {
    PENDING:   { sla: minutes(30), doc: "Accepted; waits for its target." },
    RUNNING:   { sla: hours(24), claims: true, doc: "Carries out its steps in order, each until it is proven." },
    SUCCEEDED: { terminal: true, doc: "Every step was proven." },
    FAILED:    { terminal: true, trouble: true, doc: "A step failed after its retries." },
    CANCELED:  { terminal: true, doc: "A caller ended it; what it left behind is listed." },
  },

  // biome-ignore format: a table is read by its columns
  transitions: [
    ["PENDING", when(cancelRequested),    "CANCELED"],
    ["PENDING", when(takenOver),          "FAILED", { sets: takenOverFirst }],
    ["PENDING", when(cameIntoUse),        "FAILED", { sets: disturbs }],
    ["PENDING", on("canceled"),           "CANCELED"],
    ["PENDING", on("started"),            "RUNNING"],
    ["RUNNING", on("acting"),             STAY], // a row of its own, so that who announced an action goes on with it
    ["RUNNING", on("finished"),           "SUCCEEDED"],
    ["RUNNING", on("canceled"),           "CANCELED"],
    ["RUNNING", onFailure("step_failed"), "FAILED"],
  ],
});

/**
 * As it is kept: plain JSON, without what says nothing. Every change of a run writes all its visits, so that their size is what a run
 * costs the database. `toTakeBack` is always there, since its absence tells of runs that an older server began.
 */
export function stepJson(visit: StepStatus): JsonObject {
  const json: Record<string, Json> = {};
  for (const [name, value] of Object.entries(visit)) {
    if (name === "round" && value === 1) continue;
    if (value instanceof Date) json[name] = value.toISOString();
    else if ((value !== null && value !== false && value !== "") || name === "toTakeBack") json[name] = value;
  }
  return json;
}

import type { Cause } from "../../kernel/causes.ts";
import type { Effect } from "../../kernel/effects.ts";
import type { AppError } from "../../kernel/errors.ts";
import type { JsonObject, Thing } from "../../kernel/lifecycle.ts";
import type { Residue } from "../../kernel/residue.ts";
import type { RunThing } from "../model/lifecycle.ts";
import type { LeftByStep } from "../model/next-attempt.ts";
import type { Step } from "../model/plan/plan.ts";
import type { EndedRunPhase, StepState } from "../model/run.ts";
import type { AnyStep } from "../model/step.ts";
import type { LoadedTarget, RunTarget } from "./run-target.ts";

/** The kinds of steps that this server has, by their words. */
export type StepKinds = ReadonlyMap<string, AnyStep>;

/** A run whose target exists. */
export interface RunOn<T extends Thing> extends RunThing {
  readonly target: LoadedTarget<T> & { readonly thing: T };
}

/** How far one visit to a step is. */
export interface StepProgress {
  readonly name: string;
  readonly round: number;
  readonly state: StepState;
  /** Its action was announced: something may have been done. */
  readonly isBegun: boolean;
}

export interface RunEnd {
  readonly phase: EndedRunPhase;
  /** Why; empty where there is nothing to say. */
  readonly message: string;
  /** The same for programs, where the run failed. */
  readonly cause?: Cause;
  /** It failed, and no retry helps before a person has seen to it. */
  readonly needsPerson?: true;
  readonly at: Date;
  /** What is left behind on the target: what it listed before and is not undone since, and what this run adds. */
  readonly residue: readonly Residue[];
}

/** What is asked of a target before a run is on record. */
export interface TakesRuns<T extends Thing = Thing> {
  /** Whose run slot a run takes that a caller asks for. Absent: nobody's, and the target itself has one active run. */
  readonly slotOf?: (target: RunTarget) => { readonly machineId: string };
  /** Why the target cannot take a run now, whichever else it has. Absent: it always can. */
  readonly whyNoRun?: (target: T) => readonly AppError[];
}

/**
 * What runs mean for one kind of target. The executor treats all targets alike; whatever it has to know of one kind is here, in one
 * file a kind (`runs/targets/`).
 *
 * All of it is pure. The effects of start and end commit together with the start and the end of the run.
 */
export interface TargetKind<T extends Thing = Thing> extends TakesRuns<T> {
  readonly kind: string;
  /** What the start of a run does to its target, and to things that belong to it. */
  whenStarted(run: RunOn<T>, steps: StepKinds): readonly Effect[];
  /** What the end of a run does to its target, and to things that belong to it. */
  whenEnded(run: RunOn<T>, end: RunEnd, steps: StepKinds): readonly Effect[];
  /**
   * What it means for the target that the run has come further: steps were entered, begun, proven or skipped. It goes by both lists
   * alone, since the target may have been loaded some passes before. Absent: nothing.
   */
  readonly whenProgressed?: (
    run: RunOn<T>,
    before: readonly StepProgress[],
    after: readonly StepProgress[],
  ) => readonly Effect[];
  /**
   * Settles what payloads leave open (which cluster is meant), as the target is when the run is started. The function that it
   * returns is called once a step, in the order of the plan. Absent: payloads of this kind leave nothing open.
   */
  readonly settling?: (target: T, steps: StepKinds) => (step: Step) => JsonObject;
  /** What runs have left behind on the target and nobody has seen to: its `ResidueFacts`. Absent: such targets list none. */
  readonly residueOf?: (target: T) => readonly Residue[];
  /**
   * Which of what an earlier attempt left the run itself ends, before it begins anything that this could disturb: the answer says by
   * what, for people. Absent: nothing is ended that way.
   */
  readonly endsLeftOver?: (run: RunThing, steps: StepKinds) => (left: LeftByStep) => string | undefined;
  /** What a person does when the target does not accept our credentials. */
  readonly signInRemedy?: (target: RunTarget) => string;
}

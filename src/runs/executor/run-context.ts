import type { CallContext } from "../../capabilities/call.ts";
import type { Capabilities, Capability, Provider } from "../../capabilities/provider.ts";
import type { CauseCode } from "../../kernel/causes.ts";
import type { Effect } from "../../kernel/effects.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { JsonObject, Thing } from "../../kernel/lifecycle.ts";
import type { Residue } from "../../kernel/residue.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { startChild } from "../children/child-run.ts";
import type { RunThing } from "../model/lifecycle.ts";
import type { Step } from "../model/plan/plan.ts";
import { type AnyStep, capabilitiesFor, type StepContext } from "../model/step.ts";
import type { RunEnd, RunOn, StepKinds, TargetKind } from "../targets/target-kind.ts";
import type { Workflows } from "../workflows/workflow.ts";
import type { RunLog } from "./run-log.ts";
import type { BegunActions } from "./step/begun-actions.ts";

/** An attempt at a step that failed. */
export interface FailedStep {
  readonly run: string;
  readonly step: string;
  readonly stepKind: string;
  /** From 1 on. */
  readonly attempt: number;
  readonly cause: CauseCode;
  readonly reason: string;
}

export interface RunContext {
  readonly call: CallContext;
  readonly clock: Clock;
  readonly steps: StepKinds;
  readonly workflows: Workflows;
  /** What runs mean for the run's target. */
  readonly target: TargetKind;
  /** The provider of the run's target. */
  readonly provider: Provider;
  /** What steps on this kind of target are given beside what all steps are. */
  partsOf(run: RunOn<Thing>, step: Step): object;
  /** Names this process: only the one that announced an action can know that it has not begun. */
  readonly instance: string;
  /** What this process has begun. */
  readonly begun: BegunActions;
  /** For metrics and the server's log; absent: nobody listens. */
  readonly stepFailed?: (failed: FailedStep) => void;
}

/** A run may have been accepted by a server that was started with other providers, or is of another version. */
export function checkCapable(kind: AnyStep, { payload }: Step, { name, can }: Provider): void {
  const missing = capabilitiesFor(kind, payload).filter((capability) => can[capability] === undefined);
  if (missing.length === 0) return;
  const who =
    Object.keys(can).length === 0
      ? `this server does not have the provider ${name}`
      : `the provider ${name} of this server cannot do ${missing.join(", ")}`;
  // Another replica may have it: that is what further attempts are for.
  throw new StepFailure("not_on_this_server", `${who}, which a step of kind ${kind.kind} needs`, {
    facts: { what: "capability", name: missing.join(", ") },
  });
}

const hasTarget = (run: RunThing): run is RunOn<Thing> => run.target.thing !== null;

/** What a step of the run works with. The kinds' own types have ended in `collectSteps`. */
export function stepContext(
  run: RunThing,
  step: Step,
  { provider, partsOf, call, clock }: RunContext,
  log: RunLog,
  round = 1,
): StepContext<JsonObject, Capability, Capability> {
  if (!hasTarget(run))
    throw new StepFailure("target_gone", `${run.target.kind} ${run.target.id} does not exist any more`, {
      facts: { what: run.target.kind, name: run.target.id },
    });
  const common = {
    payload: step.payload,
    runId: run.id,
    target: run.target.thing,
    can: provider.can as Capabilities,
    call,
    clock,
    log: log.say,
    params: run.params,
    heard: log.heard,
    ...withChildren(run, step, round),
  };
  return { ...common, ...partsOf(run, step) } as unknown as StepContext<JsonObject, Capability, Capability>;
}

/** What a step knows of the runs that it has started, and how it starts more. */
function withChildren(
  run: RunThing,
  { name: step }: Step,
  round: number,
): Pick<StepContext<JsonObject>, "children" | "startRun"> {
  return {
    children: run.children.filter((child) => child.step === step && child.round === round),
    startRun: (child) => startChild(run, { step, round }, child),
  };
}

/** What the start of the run does to its target. One that is gone needs nothing any more. */
export const effectsOfStart = (run: RunThing, { target, steps }: RunContext): readonly Effect[] =>
  hasTarget(run) ? target.whenStarted(run, steps) : [];

export const effectsOfEnd = (run: RunThing, end: RunEnd, { target, steps }: RunContext): readonly Effect[] =>
  hasTarget(run) ? target.whenEnded(run, end, steps) : [];

/** What runs have left behind on the target before. */
export const residueOnTarget = (run: RunThing, { target }: RunContext): readonly Residue[] =>
  run.target.thing === null ? [] : (target.residueOf?.(run.target.thing) ?? []);

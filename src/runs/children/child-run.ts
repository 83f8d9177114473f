import type { Cause } from "../../kernel/causes.ts";
import type { CreateEffect } from "../../kernel/effects.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import * as visits from "../executor/step/visit.ts";
import { type RunThing, stepJson } from "../model/lifecycle.ts";
import type { Step } from "../model/plan/plan.ts";
import type { RunPhase } from "../model/run.ts";
import type { StepShape } from "../model/step.ts";
import type { StepLeft } from "../targets/left-by-steps.ts";
import { startsRun } from "../targets/new-run.ts";
import type { RunTarget } from "../targets/run-target.ts";

/** The step that a run is a part of. A step that is entered again is in another round, and starts runs of its own there. */
export interface ParentStep {
  readonly runId: string;
  readonly step: string;
  readonly round: number;
}

/** A run that a step of this one has started, as its parent sees it. */
export interface ChildRun {
  readonly id: string;
  readonly step: string;
  readonly round: number;
  readonly target: RunTarget;
  readonly phase: RunPhase;
  /** Why it FAILED, or what it waits for. */
  readonly message: string;
  /** It was asked to end, and has not yet. */
  readonly isCanceling: boolean;
  /** Why it FAILED, for programs; null where it has not. */
  readonly cause: Cause | null;
  /** It began something whose end it could not read: it goes on alone, and its parent counts it as failed. */
  readonly isUnproven: boolean;
  /** Of a CANCELED one: how far its steps came. */
  readonly left: readonly StepLeft[];
}

/** What a step starts on another target. */
export interface NewChild {
  readonly target: RunTarget;
  readonly displayName: string;
  readonly steps: readonly Step[];
  readonly params?: Readonly<Record<string, string>>;
  /** Its first step was begun on its behalf, such as by one command for many devices: it only probes. */
  readonly begun?: BegunChild;
}

export interface BegunChild {
  readonly evidence: JsonObject;
  readonly receipt: JsonObject;
  readonly at: Date;
}

/** A step of a child's plan, with the defaults of its kind. */
export const childStep = <P extends Step["payload"]>(
  { kind, defaults }: StepShape<string, P>,
  payload: P,
  more: Partial<Pick<Step, "name" | "timeoutSeconds" | "maxRetries">> = {},
): Step => ({
  name: kind,
  kind,
  timeoutSeconds: defaults.timeout / 1_000,
  maxRetries: defaults.maxRetries,
  payload,
  ...more,
});

/**
 * The effect that starts a run as a part of this one. A step that asks for the same again, after whatever crash and by whichever
 * replica, has one run a target in each round.
 */
export function startChild(
  { id, plan, facts, holder }: RunThing,
  { step, round }: Pick<ParentStep, "step" | "round">,
  { target, displayName, steps, params = {}, begun }: NewChild,
): CreateEffect {
  const planId = `${plan.planId}/${step}`.slice(0, LONGEST_PLAN_ID);
  return startsRun(
    {
      target,
      plan: { planId, displayName, steps },
      params,
      initiator: `run ${id}`,
      holder,
      facts: { scripts: facts.scripts, ...(begun && { steps: [begunStep(steps, begun)] }) },
    },
    [id, step, round, target.kind, target.id],
    { parent_run_id: id, parent_step: step, parent_round: round },
  );
}

const LONGEST_PLAN_ID = 128;

/** Others have acted already: the run only asks whether it is done, and finds the receipt as if it had acted itself. */
function begunStep(steps: readonly Step[], { evidence, receipt, at }: BegunChild): JsonObject {
  const [first] = steps;
  if (!first) throw new Error("a run that was begun needs a step");
  const begun = visits.withIntent(visits.beginVisit(first, at), evidence);
  const clock = { now: () => at, monotonic: () => 0 };
  return stepJson({
    ...visits.acted(visits.announced(begun, { instance: "", clock }), at, { receipt }),
    actingBy: null,
  });
}

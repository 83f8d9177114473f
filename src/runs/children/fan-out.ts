import type { Cause } from "../../kernel/causes.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { JsonObject, Thing } from "../../kernel/lifecycle.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import type { ParsePayload } from "../model/plan/payloads.ts";
import type { Step } from "../model/plan/plan.ts";
import { type ActingContext, defineStepOn, type On, type ProbeReport, type StepDefaults } from "../model/step.ts";
import type { RunTarget } from "../targets/run-target.ts";
import type { NewChild } from "./child-run.ts";
import { describeSum, type Sum, sumUp } from "./sum.ts";

export interface FanOut<T extends Thing, P extends JsonObject> {
  readonly kind: string;
  readonly parse: ParsePayload<P>;
  /** The timeout is for all runs together; once it is over, those that still run are canceled. */
  readonly defaults: Pick<StepDefaults, "timeout">;
  /** Where it depends on what is done: instead of the default. Pure. */
  readonly timeoutFor?: (payload: P) => Duration;
  /** On which things runs are started: settled when the step begins, whatever belongs to the target later. Pure. */
  targets(target: T, payload: P): readonly RunTarget[];
  /** What is done on one of them. Pure. `of` is what the run works on. */
  stepsOn(target: RunTarget, payload: P, of: T): readonly Step[];
  /** What the run on one of them is told besides its steps. Pure. Left out: nothing. */
  readonly paramsOn?: (target: RunTarget, payload: P) => Readonly<Record<string, string>>;
  /** How many run at a time; the next is started once one has ended. */
  readonly atOnce: number | ((payload: P) => number);
  /** Whether the first failure ends the step: then no further run is started, and those that still run are canceled. */
  readonly stopsAtFailure?: boolean;
  /** Why the step has failed, once all runs have ended; undefined: it succeeded. Left out: each must have succeeded. */
  readonly verdict?: (sum: Sum, payload: P) => string | undefined;
  /** Why the step has failed, for programs. Left out: that runs have failed. */
  readonly causeOf?: (sum: Sum, payload: P) => Cause;
  /** What the success of the step leads to. */
  readonly whenDone?: (sum: Sum, target: T) => Pick<ProbeReport, "facts" | "effects">;
}

const CHILDREN_FAILED: Cause = { code: "children_failed" };

/** The targets as they were when the step began, in a form that is small: a run is written with every step that it comes further. */
type Evidence = { readonly targets: readonly string[] };
type Acting<T extends Thing, P> = ActingContext<P, Evidence, never, never, JsonObject, On<T>>;

const nameOf = ({ kind, id }: RunTarget): string => `${kind}/${id}`;
const targetOf = (name: string): RunTarget => {
  const at = name.indexOf("/");
  return { kind: name.slice(0, at), id: name.slice(at + 1) };
};

/**
 * A step that starts runs on other things, awaits them and sums them up. It touches no device: what it does commits together with the
 * fact that it was done, so that a crash leaves no doubt.
 *
 * A child has retries of its own; the step has none, since a second attempt would find the same runs. A workflow that enters the step
 * once more is in another round, and starts new ones.
 */
export function defineFanOut<T extends Thing, P extends JsonObject>(fanOut: FanOut<T, P>) {
  const { kind, parse, defaults, targets, stepsOn, atOnce, stopsAtFailure = false } = fanOut;
  const atOnceOf = (payload: P): number => (typeof atOnce === "number" ? atOnce : atOnce(payload));
  const seen = ({ evidence, children }: Acting<T, P>): Sum => sumUp(evidence.targets.map(targetOf), children);

  const startNext = ({ startRun, payload, ...context }: Acting<T, P>) => {
    const { active, unstarted } = seen({ ...context, startRun, payload });
    const next = unstarted.slice(0, Math.max(0, atOnceOf(payload) - active.length));
    return { effects: next.map((target) => startRun(childOn(target, payload, context.target))) };
  };
  const childOn = (target: RunTarget, payload: P, of: T): NewChild => ({
    target,
    displayName: kind,
    steps: stepsOn(target, payload, of),
    ...(fanOut.paramsOn && { params: fanOut.paramsOn(target, payload) }),
  });

  return defineStepOn<On<T>>()({
    kind,
    needs: [],
    parse,
    defaults: { ...defaults, maxRetries: 0 },
    ...(fanOut.timeoutFor && { timeoutFor: fanOut.timeoutFor }),
    actsByEffectsOnly: true,
    children: (target: Thing, payload: P) =>
      targets(target as T, payload).map((each) => childOn(each, payload, target as T)),
    before: async ({ target, payload }): Promise<Evidence> => ({ targets: targets(target, payload).map(nameOf) }),
    act: async (context: Acting<T, P>) => startNext(context),
    carryOn: async (context: Acting<T, P>) => startNext(context),
    async probe(context: Acting<T, P>) {
      const sum = seen(context);
      const { failed, canceled, active, unstarted } = sum;
      const message = describeSum(sum);
      if (stopsAtFailure && failed.length + canceled.length > 0) throw new StepFailure("children_failed", message);
      if (active.length + unstarted.length === 0) return doneUnlessFailed(sum, context);
      if (unstarted.length === context.evidence.targets.length) return { state: "not_done", message };
      return {
        state: active.length < atOnceOf(context.payload) && unstarted.length > 0 ? "halfway" : "in_progress",
        message,
      };
    },
  });

  function doneUnlessFailed(sum: Sum, { payload, target }: Acting<T, P>): ProbeReport {
    const message = describeSum(sum);
    const isWhole = sum.failed.length + sum.canceled.length === 0;
    const why = fanOut.verdict ? fanOut.verdict(sum, payload) : isWhole ? undefined : message;
    if (why !== undefined) throw StepFailure.of(fanOut.causeOf?.(sum, payload) ?? CHILDREN_FAILED, why);
    return { state: "done", message, ...fanOut.whenDone?.(sum, target) };
  }
}

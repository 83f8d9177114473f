import type { CallContext } from "../capabilities/call.ts";
import type { Capabilities, Provider } from "../capabilities/provider.ts";
import type { Clock } from "../kernel/clock.ts";
import { type Duration, milliseconds, seconds } from "../kernel/duration.ts";
import { messageOf, StepFailure } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/lifecycle.ts";
import { type Effect, type Handlers, happened, type Outcome, waitFor } from "../kernel/outcome.ts";
import { polling } from "../kernel/retry.ts";
import type { ObservedCondition } from "../lifecycles/machine/conditions.ts";
import { runStartedData } from "../lifecycles/machine/lifecycle.ts";
import { type RunThing, type runLifecycle, stepJson } from "./lifecycle.ts";
import { nextInPlan } from "./next-step.ts";
import type { Step } from "./plan.ts";
import type { EndedRunPhase, StepStatus } from "./run.ts";
import { CAUSE_OF_END, conditionsAtEnd, phaseOnSuccess } from "./run-end.ts";
import { createRunLog, type RunLog } from "./run-log.ts";
import { type AnyStep, readProbe } from "./step.ts";
import * as visits from "./step-visit.ts";
import type { StepTargets } from "./targets.ts";

export interface RunContext {
  readonly call: CallContext;
  readonly clock: Clock;
  readonly steps: ReadonlyMap<string, AnyStep>;
  /** The provider of the run's machine. */
  readonly provider: Provider;
  readonly targets: StepTargets;
  /** Names this process: only the one that announced an action may take it for not begun. */
  readonly instance: string;
}

const AT_ONCE = milliseconds(0);
/** After a crash in the middle of an action: how long a device gets to show its effect before the action counts as not begun. */
const SETTLES: Duration = seconds(30);
const UNDO_WITHIN: Duration = seconds(8);

/**
 * Carries out a run, one short look at a time: each look does one thing to a device and is then committed.
 *
 * A step's intent is persisted with its evidence before anything is done; then that an action begins, and by whom; then that it
 * was done. So any replica knows after a crash how far it came, and asks the device before it acts again.
 */
export const runHandlers: Handlers<typeof runLifecycle, RunThing, RunContext> = {
  async PENDING(run, { clock }) {
    const data = runStartedData(run.id, phaseOnSuccess(run.plan));
    return happened("started", {
      facts: { startedAt: clock.now().toISOString() },
      effects: [{ type: "move", kind: "machine", id: run.machine.id, cause: "run_started", data }],
    });
  },

  async RUNNING(run, context) {
    const log = createRunLog(run.id, context.clock);
    if (run.cancelRequestedAt !== null) return cancel(run, context, log);
    const next = nextInPlan(run.plan, run.facts.steps);
    if (next.type === "finished") return end(run, "SUCCEEDED", context, log, {});
    const step = run.plan.steps[next.index] as Step;
    if (next.type === "failed") {
      const message = `${step.name}: ${run.facts.steps[next.visit]?.message ?? "failed"}`;
      return end(run, "FAILED", context, log, { message });
    }
    const visit = next.visit === undefined ? undefined : run.facts.steps[next.visit];
    return workOn(run, step, visit ?? visits.beginVisit(step, context.clock.now()), context, log);
  },
};

type Looked = Outcome<"finished" | "canceled" | "step_failed">;

async function workOn(run: RunThing, step: Step, visit: StepStatus, context: RunContext, log: RunLog): Promise<Looked> {
  const { clock } = context;
  const pause = visits.pauseLeft(visit, clock);
  if (pause > 0) return waitFor(`${step.name}: trying again after ${visit.message}`, pause);
  const kind = context.steps.get(step.kind);
  const save = (after: StepStatus, reason: string, pause: Duration, effects: readonly Effect[] = []): Looked =>
    waitFor(reason, pause, {
      facts: { steps: [...run.facts.steps.filter(({ name }) => name !== step.name), after].map(stepJson) },
      effects: [...effects, ...log.effects(step.name)],
    });
  try {
    if (!kind) throw new StepFailure("fail", `this server does not know the step kind ${step.kind}`);
    const base = baseContext(run, step, context, log);
    if (visit.evidence === null) {
      log.say(`step ${step.name} begins${visit.retryCount > 0 ? `, attempt ${visit.retryCount + 1}` : ""}`);
      return save(visits.withIntent(visit, await kind.before(base)), `${step.name}: about to begin`, AT_ONCE);
    }
    const acting = { ...base, evidence: visit.evidence };
    const report = readProbe(await kind.probe(acting));
    if (report.state === "done") {
      log.say(`step ${step.name} is done${report.message ? `: ${report.message}` : ""}`);
      const seen = observedOn(run, report.facts, report.conditions);
      return save(visits.succeeded(visit, clock.now(), report.message ?? ""), `${step.name}: done`, AT_ONCE, seen);
    }
    if (visits.isOverdue(visit, step, clock)) {
      throw new StepFailure("retry", visits.overdueMessage(step, report.message ?? ""));
    }
    if (report.state === "not_done" && visits.mayAct(visit, context, SETTLES)) {
      if (visit.actingBy !== context.instance) {
        return save(visits.announced(visit, context), `${step.name}: acting`, AT_ONCE);
      }
      await kind.act(acting);
      return save(visits.acted(visit, clock.now()), `${step.name}: under way`, polling.first);
    }
    return save(
      { ...visit, message: report.message ?? "" },
      `${step.name}: ${report.message || "under way"}`,
      pollAfter(visit, clock),
    );
  } catch (error) {
    const final = error instanceof StepFailure && error.disposition !== "retry";
    const after = visits.failedAttempt(visit, step, { message: messageOf(error), final }, clock.now());
    log.say(`step ${step.name} failed: ${messageOf(error)}`, "stderr");
    return save(after, `${step.name}: ${messageOf(error)}`, visits.pauseLeft(after, clock));
  }
}

/** What could be taken back is; what could not is listed. It always ends. */
async function cancel(run: RunThing, context: RunContext, log: RunLog): Promise<Looked> {
  const visit = run.facts.steps.at(-1);
  const step = run.plan.steps.find(({ name }) => name === visit?.name);
  const kind = step && context.steps.get(step.kind);
  const residue: string[] = [];
  if (kind && step && visit?.state === "RUNNING" && visit.evidence !== null) {
    const left = kind.residue?.(step.payload);
    try {
      const signal = AbortSignal.any([context.call.signal, AbortSignal.timeout(UNDO_WITHIN)]);
      const base = baseContext(run, step, { ...context, call: { ...context.call, signal } }, log);
      await kind.undo?.({ ...base, evidence: visit.evidence });
      if (!kind.undo && left !== undefined) residue.push(`${step.name}: ${left}`);
    } catch (error) {
      residue.push(
        `${step.name}: ${left ?? "may have left something behind"} (undoing it failed: ${messageOf(error)})`,
      );
    }
  }
  log.say("the run was canceled");
  return end(run, "CANCELED", context, log, { residue });
}

/** The run's end, the machine's phase and its conditions are one commit. */
function end(
  run: RunThing,
  phase: EndedRunPhase,
  { clock }: RunContext,
  log: RunLog,
  { message = "", residue = [] }: { message?: string; residue?: readonly string[] },
): Looked {
  const event = { SUCCEEDED: "finished", FAILED: "step_failed", CANCELED: "canceled" } as const;
  const error = phase === "FAILED" ? { code: "EXECUTION_FAILED", message, retryable: true, details: {} } : null;
  const machine: Effect = {
    type: "move",
    kind: "machine",
    id: run.machine.id,
    cause: CAUSE_OF_END[phase],
    message,
    facts: { lastRunId: run.id },
    observed: conditionsAtEnd(run.plan, phase, message).map((condition) => ({ ...condition })),
  };
  return happened(event[phase], {
    ...(message !== "" && { message }),
    facts: { finishedAt: clock.now().toISOString(), error, residue },
    effects: [machine, ...log.effects("")],
  });
}

function baseContext(run: RunThing, step: Step, { provider, targets, call }: RunContext, log: RunLog) {
  return {
    payload: step.payload,
    machine: run.machine,
    targets,
    can: provider.can as Capabilities,
    call,
    log: log.say,
    params: run.params,
  };
}

/** What a step saw of its machine, told to the machine. */
function observedOn(
  run: RunThing,
  facts: JsonObject | undefined,
  conditions: readonly ObservedCondition[] | undefined,
): Effect[] {
  if (facts === undefined && conditions === undefined) return [];
  const observed = (conditions ?? []).map((condition) => ({ ...condition }));
  return [{ type: "observe", kind: "machine", id: run.machine.id, facts: facts ?? {}, observed }];
}

function pollAfter({ actedAt, attemptStartedAt }: StepStatus, clock: Clock): Duration {
  const since = actedAt ?? attemptStartedAt;
  const waited = since === null ? 0 : clock.now().getTime() - since.getTime();
  return milliseconds(Math.min(Math.max(waited / 4, polling.first), polling.most));
}

import { isDeepStrictEqual } from "node:util";
import type { CallContext } from "../capabilities/call.ts";
import { DeviceFailure } from "../capabilities/device-failure.ts";
import type { Capabilities, Provider } from "../capabilities/provider.ts";
import type { Clock } from "../kernel/clock.ts";
import { type Duration, milliseconds, seconds } from "../kernel/duration.ts";
import { AppError, messageOf, StepFailure } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/lifecycle.ts";
import { type Effect, type Handlers, happened, type Outcome, waitFor } from "../kernel/outcome.ts";
import { polling } from "../kernel/retry.ts";
import type { ObservedCondition } from "../lifecycles/machine/conditions.ts";
import { runStartedData } from "../lifecycles/machine/lifecycle.ts";
import type { BegunActions } from "./begun-actions.ts";
import { type RunThing, type runLifecycle, stepJson } from "./lifecycle.ts";
import { nextInPlan } from "./next-step.ts";
import type { Step } from "./plan.ts";
import type { EndedRunPhase, RunErrorCode, StepStatus } from "./run.ts";
import { CAUSE_OF_END, conditionsAtEnd, phaseOnSuccess } from "./run-end.ts";
import { createRunLog, type RunLog } from "./run-log.ts";
import { type AnyStep, type ProbeReport, readProbe } from "./step.ts";
import * as visits from "./step-visit.ts";
import type { StepTargets } from "./targets.ts";

export interface RunContext {
  readonly call: CallContext;
  readonly clock: Clock;
  readonly steps: ReadonlyMap<string, AnyStep>;
  /** The provider of the run's machine. */
  readonly provider: Provider;
  readonly targets: StepTargets;
  /** Names this process: only the one that announced an action can know that it has not begun. */
  readonly instance: string;
  /** What this process has begun. */
  readonly begun: BegunActions;
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

type Looked = Outcome<"acting" | "finished" | "canceled" | "step_failed">;

async function workOn(run: RunThing, step: Step, visit: StepStatus, context: RunContext, log: RunLog): Promise<Looked> {
  const { clock } = context;
  const pause = visits.pauseLeft(visit, clock);
  if (pause > 0) return waitFor(`${step.name}: trying again after ${visit.message}`, pause);
  const work = { run, step, visit, context, log, isActing: false };
  try {
    return await attempt(work);
  } catch (error) {
    if (isNotOfTheStep(error, context)) throw error;
    return failAttempt(work, error);
  }
}

interface Work {
  readonly run: RunThing;
  readonly step: Step;
  readonly visit: StepStatus;
  readonly context: RunContext;
  readonly log: RunLog;
  /** From the moment that the device may hear of it. */
  isActing: boolean;
}

async function attempt(work: Work): Promise<Looked> {
  const { run, step, visit, context, log } = work;
  const kind = context.steps.get(step.kind);
  if (!kind) throw new StepFailure("fail", `this server does not know the step kind ${step.kind}`);
  const base = baseContext(run, step, context, log);
  if (visit.evidence === null) {
    log.say(`step ${step.name} begins${visit.retryCount > 0 ? `, attempt ${visit.retryCount + 1}` : ""}`);
    return save(work, visits.withIntent(visit, await kind.before(base)), {
      reason: `${step.name}: about to begin`,
      after: AT_ONCE,
    });
  }
  const acting = { ...base, evidence: visit.evidence };
  const report = readProbe(await kind.probe(acting));
  if (report.state === "done") return succeed(work, report);
  if (visits.isOverdue(visit, step, context.clock)) {
    throw new StepFailure("retry", visits.overdueMessage(step, report.message ?? ""));
  }
  const action = actionOf(run, visit, context);
  const isOurs = visit.actingBy === context.instance && !context.begun.has(action);
  if (report.state !== "not_done" || !visits.mayAct(visit, { isOurs, clock: context.clock }, SETTLES)) {
    const message = report.message ?? "";
    return save(
      work,
      { ...visit, message },
      { reason: `${step.name}: ${message || "under way"}`, after: pollAfter(visit, context.clock) },
    );
  }
  if (!isOurs) {
    const steps = stepsWith(run, visits.announced(visit, context));
    return happened("acting", {
      message: `${step.name}: acting`,
      facts: { steps },
      effects: log.effects(step.name),
    });
  }
  context.begun.note(action);
  work.isActing = true;
  await kind.act(acting);
  return save(work, visits.acted(visit, context.clock.now()), {
    reason: `${step.name}: under way`,
    after: polling.first,
  });
}

/** One announcement: a new one has another time. */
const actionOf = (run: RunThing, { name, actingAt }: StepStatus, { instance }: RunContext): string =>
  `${instance} ${run.id} ${name} ${actingAt?.toISOString() ?? ""}`;

function succeed(work: Work, { message = "", facts, conditions }: ProbeReport): Looked {
  const { run, step, visit, context, log } = work;
  log.say(`step ${step.name} is done${message === "" ? "" : `: ${message}`}`);
  return save(work, visits.succeeded(visit, context.clock.now(), message), {
    reason: `${step.name}: done`,
    after: AT_ONCE,
    effects: observedOn(run, facts, conditions),
  });
}

/** We are being stopped, have lost the lease, or have no database: nothing of that is a failed attempt, and the next look goes on. */
function isNotOfTheStep(error: unknown, { call }: RunContext): boolean {
  if (error instanceof AppError && (error.kind === "unavailable" || error.kind === "deadline_exceeded")) return true;
  return call.signal.aborted && !(call.signal.reason instanceof StepFailure);
}

function failAttempt(work: Work, error: unknown): Looked {
  const { run, step, visit, context, log } = work;
  const message = messageOf(error);
  const isBug = !(error instanceof StepFailure);
  const final = isBug || error.disposition !== "retry";
  // Who did not answer may have heard. Every other failure is an answer.
  const mayHaveActed =
    (work.isActing || (visit.actingAt !== null && visit.actedAt === null)) &&
    error instanceof DeviceFailure &&
    error.reason === "unreachable";
  const after = visits.failedAttempt(visit, step, { message, final, mayHaveActed }, context.clock.now());
  log.say(`step ${step.name} failed: ${message}`, "stderr");
  if (!isBug) {
    return save(work, after, { reason: `${step.name}: ${message}`, after: visits.pauseLeft(after, context.clock) });
  }
  const steps = stepsWith(run, after);
  return end(run, "FAILED", context, log, { message: `${step.name}: ${message}`, code: "PANIC", steps });
}

interface Saved {
  readonly reason: string;
  readonly after: Duration;
  readonly effects?: readonly Effect[];
}

const stepsWith = (run: RunThing, visit: StepStatus): JsonObject[] =>
  [...run.facts.steps.filter(({ name }) => name !== visit.name), visit].map(stepJson);

/** A look that changed nothing and said nothing writes no event; one that only said something does, so that followers hear it. */
function save(
  { run, step, visit, log }: Work,
  after: StepStatus,
  { reason, after: pause, effects = [] }: Saved,
): Looked {
  const said = log.effects(step.name);
  const known = run.facts.steps.find(({ name }) => name === visit.name);
  const isNews = said.length > 0 || !isDeepStrictEqual(known, after);
  return waitFor(reason, pause, {
    ...(isNews && { facts: { steps: stepsWith(run, after) } }),
    effects: [...effects, ...said],
  });
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

interface Ending {
  readonly message?: string;
  readonly residue?: readonly string[];
  readonly code?: RunErrorCode;
  readonly steps?: readonly JsonObject[];
}

/** The run's end, the machine's phase and its conditions are one commit. */
function end(
  run: RunThing,
  phase: EndedRunPhase,
  { clock }: RunContext,
  log: RunLog,
  { message = "", residue = [], code = "EXECUTION_FAILED", steps }: Ending,
): Looked {
  const event = { SUCCEEDED: "finished", FAILED: "step_failed", CANCELED: "canceled" } as const;
  const error = phase === "FAILED" ? { code, message, retryable: code !== "PANIC", details: {} } : null;
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
    facts: { finishedAt: clock.now().toISOString(), error, residue, ...(steps && { steps }) },
    effects: [machine, ...log.effects("")],
  });
}

function baseContext(run: RunThing, step: Step, { provider, targets, call }: RunContext, log: RunLog) {
  return {
    payload: step.payload,
    machine: run.machine,
    targets: { ...targets, script: frozenScripts(run, targets) },
    can: provider.can as Capabilities,
    call,
    log: log.say,
    params: run.params,
  };
}

/** A script that changed since the run was started is not the one that its caller asked for. */
const frozenScripts =
  ({ facts: { scripts } }: RunThing, targets: StepTargets): StepTargets["script"] =>
  async (ref) => {
    const found = await targets.script(ref);
    const frozen = scripts[ref];
    if (frozen === undefined || frozen === found.digest) return found;
    throw new StepFailure(
      "fail",
      `script ${ref} is ${found.digest} now, but was ${frozen} when this run was started: start it anew`,
    );
  };

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

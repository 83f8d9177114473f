import { isDeepStrictEqual } from "node:util";
import { DeviceFailure } from "../capabilities/device-failure.ts";
import type { Clock } from "../kernel/clock.ts";
import { type Duration, milliseconds, seconds } from "../kernel/duration.ts";
import { AppError, messageOf, StepFailure } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/lifecycle.ts";
import { type Handlers, happened, type Outcome, waitFor } from "../kernel/outcome.ts";
import { polling } from "../kernel/retry.ts";
import { runStartedData } from "../lifecycles/machine/lifecycle.ts";
import { endRun } from "./end-run.ts";
import { type RunThing, type runLifecycle, stepJson } from "./lifecycle.ts";
import { nextInPlan } from "./next-step.ts";
import type { Step } from "./plan.ts";
import { type Proven, startOf, stepsWith, withProof, writtenWith } from "./progress.ts";
import type { StepStatus } from "./run.ts";
import type { LeftOver } from "./run-action.ts";
import { type RunContext, stepContext } from "./run-context.ts";
import { phaseOnSuccess } from "./run-end.ts";
import { createRunLog, type RunLog } from "./run-log.ts";
import { type ActingContext, type AnyStep, type ProbeReport, readProbe } from "./step.ts";
import * as visits from "./step-visit.ts";
import { staysAnyway, takeBack } from "./take-back.ts";

export type { RunContext } from "./run-context.ts";

const AT_ONCE = milliseconds(0);
/** After a crash in the middle of an action: how long a device gets to show its effect before the action counts as not begun. */
const SETTLES: Duration = seconds(30);
const LONG_LOOK: Duration = seconds(1);

/**
 * Carries out a run, one short look at a time: each look does one thing to a device at most and is then committed.
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
    if (run.facts.takeBackFirst !== null) return cleanUpBefore(run, run.facts.takeBackFirst, context, log);
    return goThrough(run, context);
  },
};

type Looked = Outcome<"acting" | "finished" | "canceled" | "step_failed">;

/**
 * What is proven is written with the announcement of the next action, or with the run's end: in between things are only read, and
 * a crash there costs no more than asking again. A look that has lasted is written first.
 */
async function goThrough(run: RunThing, context: RunContext): Promise<Looked> {
  const { clock } = context;
  const startedAt = clock.monotonic();
  let progress = startOf(run);
  for (;;) {
    const isLong = clock.monotonic() - startedAt > LONG_LOOK;
    // Whoever is being stopped announces nothing more: another replica would have to wait whether it happened.
    if (progress.proven !== null && (isLong || context.call.mayBegin?.() === false))
      return writtenWith(progress, waitFor(`${progress.proven}: done`, AT_ONCE));
    const looked = await lookAtNext(progress.run, context, createRunLog(run.id, clock));
    if (looked.type !== "proven") return writtenWith(progress, looked);
    progress = withProof(progress, looked);
  }
}

async function lookAtNext(run: RunThing, context: RunContext, log: RunLog): Promise<Looked | Proven> {
  const next = nextInPlan(run.plan, run.facts.steps);
  if (next.type === "finished") return endRun(run, "SUCCEEDED", context, log, {});
  const step = run.plan.steps[next.index] as Step;
  const visit = next.visit === undefined ? undefined : run.facts.steps[next.visit];
  if (next.type === "failed") return endFailed(run, step, visit, context, log);
  if (visit?.state === "WAITING") log.say(`step ${step.name}: looking first, by what the attempt before had noted`);
  return workOn(run, step, begunVisit(step, visit, context.clock.now()), context, log);
}

function begunVisit(step: Step, visit: StepStatus | undefined, now: Date): StepStatus {
  if (visit === undefined) return visits.beginVisit(step, now);
  return visit.state === "WAITING" ? visits.beginResumed(visit, now) : visit;
}

/** What the attempt before left is taken back once; what stays is listed, and the run goes on all the same. */
async function cleanUpBefore(
  run: RunThing,
  { step, evidence }: LeftOver,
  context: RunContext,
  log: RunLog,
): Promise<Looked> {
  log.say(`taking back what step ${step} of the attempt before has left`);
  const left = await takeBack({ run, step, evidence }, context, log);
  if (left !== null) log.say(`stays behind: ${left}`, "stderr");
  return waitFor(`${step}: taken back`, AT_ONCE, {
    facts: { takeBackFirst: null, ...(left !== null && { residue: [...run.facts.residue, left] }) },
    effects: log.effects(step),
  });
}

function endFailed(run: RunThing, step: Step, visit: StepStatus | undefined, context: RunContext, log: RunLog): Looked {
  const message = `${step.name}: ${visit?.message ?? "failed"}`;
  const failure = { code: "EXECUTION_FAILED", retryable: visit?.needsPerson !== true, step: step.name } as const;
  return endRun(run, "FAILED", context, log, { message, failure });
}

async function workOn(
  run: RunThing,
  step: Step,
  visit: StepStatus,
  context: RunContext,
  log: RunLog,
): Promise<Looked | Proven> {
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
type Acting = ActingContext<JsonObject, JsonObject>;

async function attempt(work: Work): Promise<Looked | Proven> {
  const { run, step, visit, context, log } = work;
  const kind = context.steps.get(step.kind);
  if (!kind) throw new StepFailure("fail", `this server does not know the step kind ${step.kind}`);
  const base = stepContext(run, step, context, log);
  if (visit.evidence !== null) return goOn(work, kind, { ...base, evidence: visit.evidence });
  log.say(`step ${step.name} begins${visit.retryCount > 0 ? `, attempt ${visit.retryCount + 1}` : ""}`);
  // Asking changes nothing, so that the evidence need not be on record for it: it is written with what the answer leads to.
  const evidence = await kind.before(base);
  return goOn({ ...work, visit: visits.withIntent(visit, evidence) }, kind, { ...base, evidence });
}

/** Asks first; acts only when that was announced by the look before. */
async function goOn(work: Work, kind: AnyStep, acting: Acting): Promise<Looked | Proven> {
  const { run, step, visit, context, log } = work;
  if (run.action === "adopt") return adopt(work, kind, acting);
  const report = await ask(work, kind, acting);
  if (report === "tells nothing") {
    return save(work, visits.withoutEvidence(visit), { reason: `${step.name}: about to begin anew`, after: AT_ONCE });
  }
  if (report.state === "done") return succeed(work, report);
  if (visits.isOverdue(visit, step, context.clock)) {
    throw new StepFailure("retry", visits.overdueMessage(step, report.message ?? ""));
  }
  const action = actionOf(run, visit, context);
  const isOurs = visit.actingBy === context.instance && !context.begun.has(action);
  if (report.state !== "not_done" || !visits.mayAct(visit, { isOurs, clock: context.clock }, SETTLES)) {
    return wait(work, report);
  }
  if (!isOurs) {
    const steps = stepsWith(run, visits.announced(visit, context)).map(stepJson);
    return happened("acting", {
      message: `${step.name}: acting`,
      facts: { steps },
      effects: log.effects(step.name),
    });
  }
  context.begun.note(action);
  work.isActing = true;
  await kind.act(acting);
  work.isActing = false; // what fails from here on is no refusal of the action
  const done = { ...work, visit: visits.acted(visit, context.clock.now()) };
  const proof = kind.reboots ? undefined : await askAtOnce(work, kind, acting);
  if (proof?.state === "done") return succeed(done, proof);
  return save(done, done.visit, { reason: `${step.name}: under way`, after: polling.first });
}

/**
 * What is done in an instant is proven in the same look. Nobody answering is for the looks that follow: that it was done must be
 * written first.
 */
async function askAtOnce({ context }: Work, kind: AnyStep, acting: Acting): Promise<ProbeReport | undefined> {
  try {
    return readProbe(await kind.probe(acting));
  } catch (error) {
    if (isUnreachable(error) || isNotOfTheStep(error, context)) return undefined;
    throw error;
  }
}

/** By the evidence of an earlier run a step can be proven, but not fail: that it failed then is why people asked to go on. */
async function ask({ step, visit, log }: Work, kind: AnyStep, acting: Acting): Promise<ProbeReport | "tells nothing"> {
  try {
    return readProbe(await kind.probe(acting));
  } catch (error) {
    if (!visit.resumed || !isOldNews(error)) throw error;
    log.say(`step ${step.name} is not done, by what was noted before: ${messageOf(error)}`);
    return "tells nothing";
  }
}

/** An answer, and none that calls for a person. */
const isOldNews = (error: unknown): boolean =>
  error instanceof StepFailure && error.disposition !== "intervene" && !isUnreachable(error);

const isUnreachable = (error: unknown): boolean => error instanceof DeviceFailure && error.reason === "unreachable";

/** Looks and never acts: the step is proven as things are, or the run ends with what was seen instead. */
async function adopt(work: Work, kind: AnyStep, acting: Acting): Promise<Looked | Proven> {
  const { step, visit, context } = work;
  const asked = await ask(work, kind, acting);
  const probed: ProbeReport =
    asked === "tells nothing" ? { state: "not_done", message: "what was begun then has failed" } : asked;
  const seen = probed.state === "done" || !kind.observe ? probed : readProbe(await kind.observe(acting));
  if (seen.state === "done") return succeed(work, seen);
  const message = seen.message ?? probed.message ?? "";
  const why = `cannot be taken as done${message === "" ? "" : `: ${message}`}`;
  if (probed.state === "not_done") throw new StepFailure("fail", why);
  if (visits.isOverdue(visit, step, context.clock))
    throw new StepFailure("fail", `${why}; ${visits.overdueMessage(step, "")}`);
  return wait(work, probed);
}

/** One announcement: a new one has another time. */
const actionOf = (run: RunThing, { name, actingAt }: StepStatus, { instance }: RunContext): string =>
  `${instance} ${run.id} ${name} ${actingAt?.toISOString() ?? ""}`;

function wait(work: Work, { message = "" }: ProbeReport): Looked {
  const { step, visit, context } = work;
  return save(
    work,
    { ...visit, message },
    { reason: `${step.name}: ${message || "under way"}`, after: pollAfter(visit, context.clock) },
  );
}

function succeed({ step, visit, context, log }: Work, report: ProbeReport): Proven {
  const { message = "" } = report;
  log.say(`step ${step.name} is done${message === "" ? "" : `: ${message}`}`);
  const succeeded = visits.succeeded(visit, context.clock.now(), message);
  return { type: "proven", visit: succeeded, report, said: log.effects(step.name) };
}

/** We are being stopped, have lost the lease, or have no database: nothing of that is a failed attempt, and the next look goes on. */
function isNotOfTheStep(error: unknown, { call }: RunContext): boolean {
  if (error instanceof AppError && (error.kind === "unavailable" || error.kind === "deadline_exceeded")) return true;
  return call.signal.aborted && !(call.signal.reason instanceof StepFailure);
}

async function failAttempt(work: Work, error: unknown): Promise<Looked> {
  const { run, step, visit, context, log } = work;
  const message = messageOf(error);
  // What the server itself says of its own (a kubeconfig that cannot be read) is for a person, and no bug.
  const isForPerson = error instanceof AppError || (error instanceof StepFailure && error.disposition === "intervene");
  const isBug = !(error instanceof StepFailure || error instanceof AppError);
  // Who did not answer may have heard. Every other failure is an answer.
  const mayHaveActed =
    (work.isActing || visit.resumed || (visit.actingAt !== null && visit.actedAt === null)) && isUnreachable(error);
  const failed = visits.failedAttempt(
    visit,
    step,
    {
      message,
      final: !(error instanceof StepFailure) || error.disposition !== "retry",
      mayHaveActed,
      needsPerson: isBug || isForPerson,
    },
    context.clock.now(),
  );
  log.say(`step ${step.name} failed: ${message}`, "stderr");
  const isFinal = failed.state === "FAILED";
  // Otherwise the next attempt goes by the evidence of this one, and what this one began is not to be taken back under it.
  const isOver = isFinal || !mayHaveActed;
  const left = isOver ? await takeBackAttempt(work, isUnreachable(error)) : null;
  const after = { ...failed, toTakeBack: isOver && left === null ? null : visit.toTakeBack };
  const residue = isFinal && left !== null ? [left] : [];
  if (isBug) {
    const failure = { code: "PANIC", retryable: false, step: step.name } as const;
    const steps = stepsWith(run, after).map(stepJson);
    return endRun(run, "FAILED", context, log, { message: `${step.name}: ${message}`, failure, steps, residue });
  }
  return save(work, after, {
    reason: `${step.name}: ${message}`,
    after: visits.pauseLeft(after, context.clock),
    residue,
  });
}

/** Before another attempt, and at the end: two scripts must not run side by side, nor a medium stay in its drive. */
async function takeBackAttempt(work: Work, isOpen: boolean): Promise<string | null> {
  const { run, step, visit, context, log } = work;
  if (visit.toTakeBack === null) return null;
  const canUndo = context.steps.get(step.kind)?.undo !== undefined;
  // The device said no: where nothing can be undone, there is then nothing to list either.
  if (work.isActing && !isOpen && !canUndo) return null;
  const left = await takeBack({ run, step: step.name, evidence: visit.toTakeBack }, context, log);
  if (left !== null) log.say(`stays behind: ${left}`, "stderr");
  return left;
}

interface Saved {
  readonly reason: string;
  readonly after: Duration;
  readonly residue?: readonly string[];
}

/** A look that changed nothing and said nothing writes no event; one that only said something does, so that followers hear it. */
function save(
  { run, step, visit, log }: Work,
  after: StepStatus,
  { reason, after: pause, residue = [] }: Saved,
): Looked {
  const said = log.effects(step.name);
  const known = run.facts.steps.find(({ name }) => name === visit.name);
  const isNews = said.length > 0 || !isDeepStrictEqual(known, after);
  return waitFor(reason, pause, {
    ...(isNews && {
      facts: {
        steps: stepsWith(run, after).map(stepJson),
        ...(residue.length > 0 && { residue: [...run.facts.residue, ...residue] }),
      },
    }),
    effects: said,
  });
}

/** What could be taken back is; what could not is listed. It always ends. */
async function cancel(run: RunThing, context: RunContext, log: RunLog): Promise<Looked> {
  const { takeBackFirst, steps } = run.facts;
  const earlier = takeBackFirst === null ? null : await takeBack({ run, ...takeBackFirst }, context, log);
  // One that has FAILED was taken back when it did.
  const visit = steps.findLast(({ state, toTakeBack }) => state !== "FAILED" && toTakeBack !== null);
  const begun = visit?.toTakeBack ? { run, step: visit.name, evidence: visit.toTakeBack } : null;
  const left = begun === null ? null : await takeBack(begun, context, log);
  const stays = begun !== null && left === null ? staysAnyway(begun, context) : null;
  log.say("the run was canceled");
  const last = steps.at(-1);
  const isOpen = last?.state === "RUNNING" || last?.state === "WAITING";
  const kept = last === visit && left === null ? { toTakeBack: null } : {};
  return endRun(run, "CANCELED", context, log, {
    residue: [earlier, left, stays].filter((one) => one !== null),
    ...(last &&
      isOpen && {
        steps: stepsWith(run, { ...visits.canceled(last, context.clock.now()), ...kept }).map(stepJson),
      }),
  });
}

function pollAfter({ actedAt, attemptStartedAt }: StepStatus, clock: Clock): Duration {
  const since = actedAt ?? attemptStartedAt;
  const waited = since === null ? 0 : clock.now().getTime() - since.getTime();
  return milliseconds(Math.min(Math.max(waited / 4, polling.first), polling.most));
}

import { DeviceFailure } from "../../../src/capabilities/device-failure.ts";
import type { Provider } from "../../../src/capabilities/provider.ts";
import type { Streams } from "../../../src/capabilities/stream.ts";
import { StepFailure } from "../../../src/kernel/errors.ts";
import type { JsonObject } from "../../../src/kernel/lifecycle.ts";
import type { Outcome } from "../../../src/kernel/outcome.ts";
import { milliseconds } from "../../../src/kernel/time/duration.ts";
import type { Machine } from "../../../src/lifecycles/machine/machine.ts";
import type { ChildRun } from "../../../src/runs/children/child-run.ts";
import { type RunContext, runHandlers } from "../../../src/runs/executor/executor.ts";
import type { FailedStep } from "../../../src/runs/executor/run-context.ts";
import { BegunActions } from "../../../src/runs/executor/step/begun-actions.ts";
import type { Heard } from "../../../src/runs/model/heard-script.ts";
import type { RunThing, Unproven } from "../../../src/runs/model/lifecycle.ts";
import { inheritFrom, type LeftByStep, type LeftOver, type NextAttempt } from "../../../src/runs/model/next-attempt.ts";
import type { Plan } from "../../../src/runs/model/plan/plan.ts";
import type { ManualMark, RunAction, StepStatus } from "../../../src/runs/model/run.ts";
import { type AnyStep, collectSteps, defineStep, type ProbeAnswer } from "../../../src/runs/model/step.ts";
import type { StepTargets } from "../../../src/runs/model/targets.ts";
import { machineTarget } from "../../../src/runs/targets/machine.ts";
import { machineStepParts } from "../../../src/runs/targets/machine-steps.ts";
import type { RunOn, TargetKind } from "../../../src/runs/targets/target-kind.ts";
import type { Workflows } from "../../../src/runs/workflows/workflow.ts";
import { final, retryable } from "../failures.ts";

/** A device of which a test says what happens to it, and which counts what is done to it. */
export class Device {
  acts = 0;
  undone = 0;
  carriedOn = 0;
  failCarryingOn: Error | undefined;
  answers: ProbeAnswer[] = [];
  failActing: Error | undefined;
  failUndoing: Error | undefined;
  obeysAllTheSame = false;

  readonly step = defineStep({
    kind: "poke",
    needs: [],
    defaults: { timeout: milliseconds(60_000) },
    parse: (payload) => payload,
    before: async () => ({ seen: this.acts }),
    act: async () => {
      if (!this.failActing || this.obeysAllTheSame) this.acts += 1;
      if (this.failActing) throw this.failActing;
    },
    probe: async () => this.answers.shift() ?? (this.acts > 0 ? "done" : "not_done"),
    carryOn: async () => {
      if (this.failCarryingOn) throw this.failCarryingOn;
      this.carriedOn += 1;
    },
    undo: async () => {
      if (this.failUndoing) throw this.failUndoing;
      this.undone += 1;
    },
  });
}

export class Bench {
  now = new Date("2026-01-01T00:00:00Z");
  startedAt = this.now;
  instance = "one";
  readonly device = new Device();
  begun = new BegunActions();
  stop = new AbortController();
  mayBegin = true;
  can: Provider["can"] = {};
  scripts: Record<string, string> = {};
  steps: StepStatus[] = [];
  cancelRequestedAt: Date | null = null;
  logged: string[] = [];
  failedSteps: FailedStep[] = [];
  maxRetries = 1;
  planned = ["first"];
  /** Kinds of steps by the names of the steps; the device's own for all others. */
  kinds: readonly { readonly kind: string }[] | undefined;
  id = "run-1";
  action: RunAction = "start";
  residue: string[] = [];
  residueRecords: readonly JsonObject[] = [];
  /** As it is listed on the machine. */
  machineResidue: readonly string[] = [];
  machineResidueRecords: readonly JsonObject[] = [];
  conditions: Machine["conditions"] = [];
  takeBackFirst: LeftOver | null = null;
  doneBefore: readonly LeftByStep[] = [];
  compensateFirst: LeftOver | null = null;
  undoingSince: Date | null = null;
  unproven: Unproven | null = null;
  manual: ManualMark | null = null;
  heard: Heard | null = null;
  workflows: Workflows = new Map();
  /** Instead of one that consists of what is `planned`. */
  plan: Plan | undefined;
  children: readonly ChildRun[] = [];
  streams: Streams | undefined;
  cordoned: { readonly cluster: string; readonly node: string } | null = null;

  run(): RunThing {
    return {
      id: this.id,
      version: 1,
      basis: 1,
      state: { name: "RUNNING" },
      stateSince: this.now,
      stateVersion: 1,
      outcome: null,
      parent: null,
      holder: { kind: "run", id: this.id },
      children: this.children,
      target: {
        kind: "machine",
        id: "m-1",
        thing: {
          id: "m-1",
          state: { name: "PROVISIONING" },
          conditions: this.conditions,
          facts: {
            residue: this.machineResidue,
            residueRecords: this.machineResidueRecords,
            cordoned: this.cordoned,
          },
        } as unknown as Machine,
      },
      plan: this.plan ?? {
        planId: "plan/test",
        displayName: "",
        steps: this.planned.map((name) => ({
          name,
          kind: this.kinds?.some(({ kind }) => kind === name) ? name : "poke",
          timeoutSeconds: 60,
          maxRetries: this.maxRetries,
          payload: {},
        })),
      },
      jobId: "job-1",
      params: {},
      action: this.action,
      cancelRequestedAt: this.cancelRequestedAt,
      manual: this.manual,
      facts: {
        scripts: this.scripts,
        steps: this.steps,
        startedAt: this.startedAt,
        finishedAt: null,
        error: null,
        residue: this.residue,
        residueRecords: this.residueRecords,
        takeBackFirst: this.takeBackFirst,
        doneBefore: this.doneBefore,
        compensateFirst: this.compensateFirst,
        undoingSince: this.undoingSince,
        unproven: this.unproven,
        heard: this.heard,
      },
    };
  }

  get context(): RunContext {
    const steps = collectSteps(this.kinds ?? [this.device.step]) as ReadonlyMap<string, AnyStep>;
    // all that the device of these tests asks for
    const targets = { script: async (ref) => ({ ref, digest: "sha256:new", text: "" }) } as StepTargets;
    return {
      call: {
        signal: this.stop.signal,
        subject: "run run-1",
        mayTouchDevice: (wanted) => wanted,
        mayBegin: () => this.mayBegin,
        ...(this.streams && { streams: this.streams }),
      },
      clock: { now: () => this.now, monotonic: () => this.now.getTime() },
      steps,
      target: machineTarget as unknown as TargetKind,
      begun: this.begun,
      workflows: this.workflows,
      provider: { name: "test", can: this.can } satisfies Provider,
      partsOf: (run, step) => machineStepParts(run as RunOn<Machine>, step, { targets, steps }),
      instance: this.instance,
      stepFailed: (failed) => this.failedSteps.push(failed),
    };
  }

  /** One pass, committed. */
  async pass(): Promise<Outcome> {
    const outcome = await runHandlers.RUNNING(this.run(), this.context);
    this.commit(outcome);
    return outcome;
  }

  /** A pass in which an attempt fails, and the one that undoes what it began. */
  async failAttempt(): Promise<void> {
    await this.pass();
    if (this.steps.at(-1)?.failing == null) throw new Error(`nothing failed: ${JSON.stringify(this.steps)}`);
    await this.pass();
  }

  /** Looks until it is on record that an action begins. */
  async announce(): Promise<void> {
    for (let looks = 0; this.steps.at(-1)?.actingAt == null; looks += 1) {
      if (looks === 5) throw new Error(`nothing was announced: ${JSON.stringify(this.steps)}`);
      await this.pass();
    }
  }

  /** One pass whose commit never came about, although the process lives on. */
  async lookInVain(): Promise<void> {
    await runHandlers.RUNNING(this.run(), this.context);
  }

  /** One pass whose commit never came about: the process died just before. */
  async lookAndDie(): Promise<void> {
    await runHandlers.RUNNING(this.run(), this.context);
    this.instance = "two";
  }

  async untilEnd(most = 30): Promise<Outcome> {
    for (let looks = 0; looks < most; looks += 1) {
      const outcome = await this.pass();
      if (outcome.type === "happened" && outcome.event !== "acting") return outcome;
      if (outcome.type === "waiting") this.now = new Date(this.now.getTime() + outcome.after);
    }
    throw new Error(`no end after ${most} looks: ${JSON.stringify(this.steps)}`);
  }

  private commit(outcome: Outcome): void {
    const { steps, residue, residueRecords, takeBackFirst, doneBefore, compensateFirst, undoingSince, heard } =
      outcome.facts ?? {};
    if (heard !== undefined) this.heard = heard as Heard | null;
    if (steps) this.steps = (steps as unknown as Record<string, never>[]).map(revive);
    if (residue) this.residue = residue as string[];
    if (residueRecords) this.residueRecords = residueRecords as readonly JsonObject[];
    if (takeBackFirst !== undefined) this.takeBackFirst = takeBackFirst as LeftOver | null;
    if (doneBefore !== undefined) this.doneBefore = doneBefore as readonly LeftByStep[];
    if (compensateFirst !== undefined) this.compensateFirst = compensateFirst as LeftOver | null;
    if (outcome.facts?.unproven !== undefined) this.unproven = outcome.facts.unproven as Unproven | null;
    if (undoingSince !== undefined) this.undoingSince = undoingSince === null ? null : new Date(String(undoingSince));
    for (const effect of outcome.effects ?? []) {
      const told = effect.type === "move" || effect.type === "observe" ? effect.facts : undefined;
      if (told?.residue !== undefined && effect.kind === "machine") {
        this.machineResidue = told.residue as string[];
        this.machineResidueRecords = told.residueRecords as readonly JsonObject[];
      }
      if (effect.type === "log") this.logged.push(...effect.lines.map(({ text }) => Buffer.from(text).toString()));
    }
  }
}

const DATES = ["startedAt", "finishedAt", "nextAttemptAt", "attemptStartedAt", "actingAt", "streamedAt", "actedAt"];
const UNSAID = {
  ...Object.fromEntries(DATES.map((name) => [name, null])),
  message: "",
  carriedOver: false,
  actingBy: null,
  unanswered: null,
  round: 1,
  cause: null,
  verdict: "",
  unansweredCause: null,
  evidence: null,
  receipt: null,
  receiptToTakeBack: null,
  failing: null,
  takenBack: false,
  resumed: false,
  needsPerson: false,
};
/** As the store reads what was written: what says nothing was left out. */
export const revive = (step: Record<string, unknown>): StepStatus =>
  Object.fromEntries(
    Object.entries({ ...UNSAID, ...step }).map(([name, value]) => [
      name,
      DATES.includes(name) && value !== null ? new Date(String(value)) : value,
    ]),
  ) as unknown as StepStatus;

export const PROVISIONED = { type: "Provisioned", status: true, reason: "ImageInstalled", message: "" } as const;

/** A bench whose run has failed or was canceled, as the next attempt at its job. */
export function nextAttempt(bench: Bench, action: NextAttempt): Bench {
  const { steps, takeBackFirst } = inheritFrom(bench, action);
  const anew = { residue: [], residueRecords: [], cancelRequestedAt: null, startedAt: bench.now };
  Object.assign(bench, { id: "run-2", action, steps, takeBackFirst, ...anew });
  bench.device.failActing = undefined;
  bench.logged = [];
  return bench;
}

/** One that could not take back what it had begun: the device does not answer to that. */
export async function unsettledBench(): Promise<Bench> {
  const bench = new Bench();
  bench.maxRetries = 0;
  bench.device.failUndoing = retryable("the BMC is dead");
  bench.device.failActing = final("refused");
  await untilFailed(bench);
  return bench;
}

/** What keeps us from a device, which then has not been asked at all. */
export const NOT_LET_IN = [
  ["the BMC rejects the credentials", new DeviceFailure("credentials_rejected", "bmc", "wrong credentials (401)")],
  [
    "there are no credentials",
    new StepFailure("credentials_missing", "there are no BMC credentials for machine m-1", { facts: { at: "bmc" } }),
  ],
  ["another certificate is shown", new DeviceFailure("certificate_changed", "bmc", "another was pinned")],
  ["another host key is shown", new DeviceFailure("host_key_changed", "bmc", "another key is pinned")],
] as const;

export async function failedBench(planned = ["first"]): Promise<Bench> {
  const bench = new Bench();
  bench.planned = planned;
  bench.maxRetries = 0;
  bench.device.failActing = final("refused");
  await untilFailed(bench);
  return bench;
}

async function untilFailed(bench: Bench): Promise<void> {
  const end = await bench.untilEnd();
  if (!("event" in end) || end.event !== "step_failed")
    throw new Error(`it was to fail, and came to ${JSON.stringify(end)}`);
}

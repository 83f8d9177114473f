import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DeviceFailure } from "../capabilities/device-failure.ts";
import type { Capabilities, Provider } from "../capabilities/provider.ts";
import { milliseconds } from "../kernel/duration.ts";
import { AppError, StepFailure } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/lifecycle.ts";
import type { Outcome } from "../kernel/outcome.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import { BegunActions } from "./begun-actions.ts";
import { type RunContext, runHandlers } from "./executor.ts";
import { NoCredentials } from "./failure-causes.ts";
import type { Heard } from "./heard-script.ts";
import type { RunThing } from "./lifecycle.ts";
import type { RunAction, StepStatus } from "./run.ts";
import { ACTION_RULES, inheritFrom, type LeftOver, mayFollowPhase, type NextAttempt } from "./run-action.ts";
import { type AnyStep, collectSteps, defineStep, type ProbeAnswer } from "./step.ts";
import type { StepTargets } from "./targets.ts";

/** A device of which a test says what happens to it, and which counts what is done to it. */
class Device {
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

class Bench {
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
  maxRetries = 1;
  planned = ["first"];
  /** Kinds of steps by the names of the steps; the device's own for all others. */
  kinds: readonly { readonly kind: string }[] | undefined;
  id = "run-1";
  action: RunAction = "start";
  residue: string[] = [];
  /** As it is listed on the machine. */
  machineResidue: readonly string[] = [];
  conditions: Machine["conditions"] = [];
  takeBackFirst: LeftOver | null = null;
  heard: Heard | null = null;
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
      machine: {
        id: "m-1",
        state: { name: "PROVISIONING" },
        conditions: this.conditions,
        facts: { residue: this.machineResidue, cordoned: this.cordoned },
      } as unknown as Machine,
      plan: {
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
      facts: {
        scripts: this.scripts,
        steps: this.steps,
        startedAt: this.startedAt,
        finishedAt: null,
        error: null,
        residue: this.residue,
        takeBackFirst: this.takeBackFirst,
        heard: this.heard,
      },
    };
  }

  get context(): RunContext {
    return {
      call: {
        signal: this.stop.signal,
        subject: "run run-1",
        mayTouchDevice: (wanted) => wanted,
        mayBegin: () => this.mayBegin,
      },
      clock: { now: () => this.now, monotonic: () => this.now.getTime() },
      steps: collectSteps(this.kinds ?? [this.device.step]) as ReadonlyMap<string, AnyStep>,
      begun: this.begun,
      provider: { name: "test", can: this.can } satisfies Provider,
      // all that the device of these tests asks for
      targetsOf: () => ({ script: async (ref) => ({ ref, digest: "sha256:new", text: "" }) }) as StepTargets,
      instance: this.instance,
    };
  }

  /** One look, committed. */
  async look(): Promise<Outcome> {
    const outcome = await runHandlers.RUNNING(this.run(), this.context);
    this.commit(outcome);
    return outcome;
  }

  /** Looks until it is on record that an action begins. */
  async announce(): Promise<void> {
    for (let looks = 0; this.steps.at(-1)?.actingAt == null; looks += 1) {
      if (looks === 5) throw new Error(`nothing was announced: ${JSON.stringify(this.steps)}`);
      await this.look();
    }
  }

  /** One look whose commit never came about, although the process lives on. */
  async lookInVain(): Promise<void> {
    await runHandlers.RUNNING(this.run(), this.context);
  }

  /** One look whose commit never came about: the process died just before. */
  async lookAndDie(): Promise<void> {
    await runHandlers.RUNNING(this.run(), this.context);
    this.instance = "two";
  }

  async untilEnd(most = 30): Promise<Outcome> {
    for (let looks = 0; looks < most; looks += 1) {
      const outcome = await this.look();
      if (outcome.type === "happened" && outcome.event !== "acting") return outcome;
      if (outcome.type === "waiting") this.now = new Date(this.now.getTime() + outcome.after);
    }
    throw new Error(`no end after ${most} looks: ${JSON.stringify(this.steps)}`);
  }

  private commit(outcome: Outcome): void {
    const { steps, residue, takeBackFirst, heard } = outcome.facts ?? {};
    if (heard !== undefined) this.heard = heard as Heard | null;
    if (steps) this.steps = (steps as unknown as Record<string, never>[]).map(revive);
    if (residue) this.residue = residue as string[];
    if (takeBackFirst !== undefined) this.takeBackFirst = takeBackFirst as LeftOver | null;
    for (const effect of outcome.effects ?? []) {
      const told = effect.type === "move" || effect.type === "observe" ? effect.facts?.residue : undefined;
      if (told !== undefined && effect.kind === "machine") this.machineResidue = told as string[];
      if (effect.type === "log") this.logged.push(...effect.lines.map(({ text }) => Buffer.from(text).toString()));
    }
  }
}

const DATES = ["startedAt", "finishedAt", "nextAttemptAt", "attemptStartedAt", "actingAt", "actedAt"];
const UNSAID = {
  ...Object.fromEntries(DATES.map((name) => [name, null])),
  message: "",
  carriedOver: false,
  actingBy: null,
  unanswered: null,
  evidence: null,
  takenBack: false,
  resumed: false,
  needsPerson: false,
};
/** As the store reads what was written: what says nothing was left out. */
const revive = (step: Record<string, unknown>): StepStatus =>
  Object.fromEntries(
    Object.entries({ ...UNSAID, ...step }).map(([name, value]) => [
      name,
      DATES.includes(name) && value !== null ? new Date(String(value)) : value,
    ]),
  ) as unknown as StepStatus;

const PROVISIONED = { type: "Provisioned", status: true, reason: "ImageInstalled", message: "" } as const;

describe("a run", () => {
  test("begins by moving its machine, in the same commit", async () => {
    const bench = new Bench();
    const outcome = await runHandlers.PENDING({ ...bench.run(), state: { name: "PENDING" } }, bench.context);
    expect(outcome).toMatchObject({
      type: "happened",
      event: "started",
      effects: [{ type: "move", cause: "run_started", data: { run: "run-1" } }],
    });
  });

  test("carries out its steps in order and ends with its machine", async () => {
    const bench = new Bench();
    bench.planned = ["first", "second"];
    const outcome = await bench.untilEnd();
    expect(outcome).toMatchObject({
      event: "finished",
      effects: expect.arrayContaining([
        expect.objectContaining({
          type: "move",
          cause: "run_succeeded",
          facts: expect.objectContaining({ lastRunId: "run-1" }),
        }),
      ]),
    });
    expect(bench.steps.map(({ name, state }) => [name, state])).toEqual([
      ["first", "SUCCEEDED"],
      ["second", "SUCCEEDED"],
    ]);
  });

  test("that succeeds leaves it to looks to say that the host key is the right one again", async () => {
    const bench = new Bench();
    const changed = { type: "NeedsIntervention", status: true, reason: "HostKeyChanged", message: "" } as const;
    bench.conditions = [{ ...changed, lastTransition: bench.now }];
    const ended = expect.objectContaining({ type: "move", cause: "run_succeeded", observed: [] });
    expect(await bench.untilEnd()).toMatchObject({ event: "finished", effects: expect.arrayContaining([ended]) });
  });

  describe("that has proven a step", () => {
    const readyToProve = async (first: ProbeAnswer) => {
      const bench = new Bench();
      bench.planned = ["first", "second"];
      await bench.announce();
      bench.device.answers = ["not_done", first, "not_done"];
      return bench;
    };

    test("writes it with the announcement of the next action, and acts only in the look after that", async () => {
      const bench = await readyToProve("done");
      expect(await bench.look()).toMatchObject({ event: "acting", message: "second: acting" });
      expect(bench.steps.map(({ name, state }) => [name, state])).toEqual([
        ["first", "SUCCEEDED"],
        ["second", "RUNNING"],
      ]);
      expect(bench.device.acts).toBe(1);
    });

    test("lets the next step see the machine as the one before has left it, and tells the machine once", async () => {
      const bench = await readyToProve({ state: "done", facts: { bootId: "new" }, conditions: [PROVISIONED] });
      const seen: unknown[] = [];
      const { before } = bench.device.step;
      bench.device.step.before = async (context) => {
        seen.push(context.machine.facts.bootId);
        return before(context);
      };
      const { effects = [] } = await bench.look();
      expect(seen).toEqual(["new"]);
      expect(effects.filter(({ kind }) => kind === "machine")).toEqual([
        {
          type: "observe",
          kind: "machine",
          id: "m-1",
          facts: { bootId: "new" },
          observed: [{ ...PROVISIONED, at: expect.any(String) }],
        },
      ]);
    });

    test("tells of it with its end, in one change of the machine", async () => {
      const bench = await readyToProve({ state: "done", facts: { bootId: "new" }, conditions: [PROVISIONED] });
      bench.planned = ["first"];
      const { effects = [] } = await bench.look();
      expect(effects.filter(({ kind }) => kind === "machine")).toMatchObject([
        { type: "move", cause: "run_succeeded", facts: { bootId: "new", lastRunId: "run-1" } },
      ]);
      expect(effects.flatMap((effect) => (effect.type === "move" ? effect.observed : []))).toContainEqual({
        ...PROVISIONED,
        at: expect.any(String),
      });
    });

    test("writes it first when the look has lasted", async () => {
      const bench = await readyToProve("done");
      const { act } = bench.device.step;
      bench.device.step.act = async (context) => {
        bench.now = new Date(bench.now.getTime() + 5_000);
        return act(context);
      };
      expect(await bench.look()).toMatchObject({ type: "waiting", reason: "first: done", after: 0 });
      expect(bench.steps.map(({ name, state }) => [name, state])).toEqual([["first", "SUCCEEDED"]]);
    });

    test("keeps it although the next step fails", async () => {
      const bench = await readyToProve("done");
      bench.maxRetries = 0;
      const { before } = bench.device.step;
      bench.device.step.before = async () => {
        throw new StepFailure("fail", "no such image");
      };
      await bench.look();
      bench.device.step.before = before;
      expect(bench.steps.map(({ name, state }) => [name, state])).toEqual([
        ["first", "SUCCEEDED"],
        ["second", "FAILED"],
      ]);
    });

    test("asks again where the look came to nothing, and does not act again", async () => {
      const bench = await readyToProve("done");
      await bench.lookInVain();
      await bench.look();
      expect(bench.steps[0]).toMatchObject({ name: "first", state: "SUCCEEDED" });
      expect(bench.device.acts).toBe(1);
    });
  });

  test("stops at the first step that fails after its retries", async () => {
    const bench = new Bench();
    bench.planned = ["first", "second"];
    bench.device.failActing = new StepFailure("retry", "no answer");
    const outcome = await bench.untilEnd();
    expect(outcome).toMatchObject({
      event: "step_failed",
      message: "first: no answer",
      effects: [{ cause: "run_failed" }],
    });
    expect(bench.steps).toMatchObject([{ name: "first", state: "FAILED", retryCount: 2, message: "no answer" }]);
  });

  test("does not try again what failed for good", async () => {
    const bench = new Bench();
    bench.maxRetries = 5;
    bench.device.failActing = new StepFailure("fail", "refused");
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
    expect(bench.steps).toMatchObject([{ retryCount: 1 }]);
  });

  test("gives up a step that does not end in time, with what was seen last", async () => {
    const bench = new Bench();
    bench.maxRetries = 0;
    bench.device.answers = Array.from({ length: 50 }, () => ({
      state: "in_progress" as const,
      message: "still booting",
    }));
    expect(await bench.untilEnd(60)).toMatchObject({
      event: "step_failed",
      message: "first: not done within 1m: still booting",
    });
  });
});

describe("an action", () => {
  test("begins only once its intent, and then its beginning, are on record", async () => {
    const bench = new Bench();
    await bench.look();
    expect(bench.steps).toMatchObject([{ evidence: { seen: 0 }, actingBy: "one", actedAt: null }]);
    expect(bench.device.acts).toBe(0);
    await bench.look();
    expect(bench.device.acts).toBe(1);
    expect(bench.steps).toMatchObject([{ state: "SUCCEEDED" }]);
  });

  test("is not repeated while the device takes its time", async () => {
    const bench = new Bench();
    bench.device.answers = ["not_done", "not_done", "not_done", "not_done", "unknown", "in_progress"];
    await bench.untilEnd();
    expect(bench.device.acts).toBe(1);
  });

  test("that has come halfway is carried on, also when its process died in the middle, and never before it is on record", async () => {
    const bench = new Bench();
    bench.device.answers = ["halfway"];
    await bench.look();
    expect(bench.steps).toMatchObject([{ actingBy: "one", actedAt: null }]);
    expect(bench.device.carriedOn).toBe(0);
    bench.device.answers = ["halfway", "halfway"];
    await bench.lookAndDie();
    await bench.look();
    expect(bench.device).toMatchObject({ acts: 0, carriedOn: 2 });
    expect(bench.steps).toMatchObject([{ state: "RUNNING", actingBy: "one" }]);
  });

  test("that the device has accepted is on record, although asking it right afterwards went wrong", async () => {
    const bench = new Bench();
    await bench.announce();
    const { probe } = bench.device.step;
    Object.assign(bench.device.step, {
      probe: async () => {
        if (bench.device.acts > 0) throw new DeviceFailure("retry", "protocol", "half a page", { status: 200 });
        return probe({} as never);
      },
    });
    await bench.look();
    expect(bench.steps).toMatchObject([{ actedAt: expect.any(Date), retryCount: 0 }]);
    expect(bench.device).toMatchObject({ acts: 1, undone: 0 });
  });

  test("that is carried on is no failed attempt while nobody answers, and goes by the same evidence when its time is over", async () => {
    const bench = new Bench();
    bench.device.failCarryingOn = new DeviceFailure("retry", "unreachable", "the BMC does not answer");
    await bench.announce();
    bench.device.answers = Array.from({ length: 60 }, () => "halfway" as const);
    for (let looks = 0; looks < 3; looks += 1) await bench.look();
    expect(bench.steps).toMatchObject([{ retryCount: 0, message: "the BMC does not answer", evidence: { seen: 0 } }]);
    bench.now = new Date(bench.now.getTime() + 61_000);
    await bench.look();
    expect(bench.steps).toMatchObject([{ retryCount: 1, state: "RUNNING", evidence: { seen: 0 } }]);
    expect(bench.device).toMatchObject({ undone: 0 });
    bench.device.failCarryingOn = undefined;
    bench.now = new Date(bench.now.getTime() + 5_000);
    await bench.look();
    expect(bench.device.carriedOn).toBe(1);
    bench.device.answers = ["done"];
    await bench.untilEnd();
    expect(bench.steps).toMatchObject([{ state: "SUCCEEDED" }]);
  });

  test("is done once although the process died between acting and saying so, when the device shows it", async () => {
    const bench = new Bench();
    await bench.announce();
    await bench.lookAndDie();
    expect(bench.device.acts).toBe(1);
    await bench.untilEnd();
    expect(bench.device.acts).toBe(1);
  });

  test("is not believed undone right after a death in the middle of it", async () => {
    const bench = new Bench();
    await bench.announce();
    await bench.lookAndDie();
    bench.device.answers = ["not_done"];
    const outcome = await bench.look();
    expect(outcome.type).toBe("waiting");
    expect(bench.device.acts).toBe(1);
  });

  test("is believed undone only when the device has shown nothing for half a minute", async () => {
    const bench = new Bench();
    await bench.announce();
    await bench.lookAndDie();
    const died = bench.now.getTime();
    const lookTwiceAfter = async (seconds: number) => {
      bench.now = new Date(died + seconds * 1_000);
      bench.device.answers = ["not_done", "not_done"];
      await bench.look();
      await bench.look();
      return bench.device.acts;
    };
    expect(await lookTwiceAfter(29)).toBe(1);
    expect(await lookTwiceAfter(31)).toBe(2);
  });

  test("is done by the next one when the process died before it", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.instance = "two"; // announced, and then nothing
    await bench.untilEnd();
    expect(bench.device.acts).toBe(1);
  });
});

describe("an action whose outcome was not written", () => {
  test("is not repeated by the same process while the device has not shown it", async () => {
    const bench = new Bench();
    await bench.announce();
    await bench.lookInVain();
    bench.device.answers = ["not_done", "not_done"];
    await bench.look();
    await bench.look();
    expect(bench.device.acts).toBe(1);
    await bench.untilEnd();
    expect(bench.device.acts).toBe(1);
  });

  test("is announced anew, and done, when the device has still not shown it after a while", async () => {
    const bench = new Bench();
    await bench.announce();
    await bench.lookInVain();
    bench.device.acts = 0; // the device never heard of it
    await bench.untilEnd();
    expect(bench.device.acts).toBe(1);
  });
});

describe("an action without an answer", () => {
  const lost = new DeviceFailure("retry", "unreachable", "the connection was closed");

  test("is asked for by the evidence of before: the device may have heard", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.device.failActing = lost;
    bench.device.obeysAllTheSame = true;
    await bench.look();
    expect(bench.steps).toMatchObject([
      { retryCount: 0, evidence: { seen: 0 }, actedAt: null, unanswered: "the connection was closed" },
    ]);
    await bench.untilEnd();
    expect(bench.device).toMatchObject({ acts: 1, undone: 0 });
    expect(bench.steps).toMatchObject([{ state: "SUCCEEDED", retryCount: 0, unanswered: null }]);
  });

  test("is no failure where there is no second attempt, also while the device cannot be asked", async () => {
    const bench = new Bench();
    bench.maxRetries = 0;
    bench.device.failActing = lost;
    bench.device.obeysAllTheSame = true;
    await bench.announce();
    await bench.look();
    const { probe } = bench.device.step;
    let asked = 0;
    Object.assign(bench.device.step, {
      probe: async () => {
        asked += 1;
        if (asked <= 3) throw lost;
        return probe({} as never);
      },
    });
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device).toMatchObject({ acts: 1, undone: 0 });
  });

  test("is not repeated by a process that has begun so much since that it does not remember this one", async () => {
    const bench = new Bench();
    bench.begun = new BegunActions(1);
    await bench.announce();
    bench.device.failActing = lost;
    bench.device.obeysAllTheSame = true;
    await bench.look();
    bench.begun.note("one run-2 first");
    bench.device.answers = ["not_done"];
    await bench.look();
    expect(bench.device.acts).toBe(1);
  });

  test("fails its attempt when its time is over, and the next one goes by the same evidence", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.device.failActing = lost;
    await bench.look();
    Object.assign(bench.device.step, { probe: () => Promise.reject(lost) });
    bench.now = new Date(bench.now.getTime() + 61_000);
    await bench.look();
    expect(bench.device.undone).toBe(0);
    expect(bench.steps).toMatchObject([
      { state: "RUNNING", retryCount: 1, evidence: { seen: 0 }, toTakeBack: { seen: 0 }, unanswered: null },
    ]);
    expect(bench.steps[0]?.message).toBe(
      "the connection was closed; then not done within 1m: the connection was closed",
    );
  });

  test("is repeated only once the device has shown nothing of it for half a minute, as another attempt", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.device.failActing = lost;
    await bench.look();
    bench.device.failActing = undefined;
    const told = bench.now.getTime();
    while (bench.steps[0]?.retryCount === 0) {
      const outcome = await bench.look();
      if (outcome.type === "waiting") bench.now = new Date(bench.now.getTime() + outcome.after);
    }
    expect(bench.now.getTime() - told).toBeGreaterThan(30_000);
    expect(bench.now.getTime() - told).toBeLessThan(60_000);
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device).toMatchObject({ acts: 1, undone: 0 });
    expect(bench.steps).toMatchObject([{ state: "SUCCEEDED", retryCount: 1 }]);
  });

  test("is not repeated where there is no second attempt: it is asked for until the time is over", async () => {
    const bench = new Bench();
    bench.maxRetries = 0;
    let told = 0;
    Object.assign(bench.device.step, {
      act: async () => {
        told += 1;
        throw new DeviceFailure("retry", "busy", "answered with status 500", { status: 500 });
      },
    });
    expect(await bench.untilEnd()).toMatchObject({
      event: "step_failed",
      message: "first: answered with status 500; then not done within 1m",
    });
    expect(told).toBe(1);
  });

  test("that is cut off after all the time that a look may take may have been heard too", async () => {
    const bench = new Bench();
    await bench.announce();
    const late = new StepFailure("retry", "the work did not end within 5m");
    bench.device.failActing = late;
    bench.stop.abort(late);
    await bench.look();
    expect(bench.steps).toMatchObject([{ retryCount: 0, unanswered: late.message }]);
  });

  test("cannot be one that this process has announced and not begun: the next attempt begins anew", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.now = new Date(bench.now.getTime() + 61_000);
    await bench.look();
    expect(bench.device.acts).toBe(0);
    expect(bench.steps).toMatchObject([{ retryCount: 1, evidence: null, actingAt: null }]);
  });

  const ODD_ANSWERS = [
    ["500", "busy", 500],
    ["502", "busy", 502],
    ["504", "busy", 504],
    ["200 and half a page", "protocol", 200],
    ["what is no HTTP at all", "protocol", undefined],
  ] as const;
  test.each(ODD_ANSWERS)(
    "or with %s, although the device obeyed, is not repeated nor taken back",
    async (_, reason, status) => {
      const bench = new Bench();
      await bench.announce();
      bench.device.failActing = new DeviceFailure("retry", reason, "odd", status === undefined ? {} : { status });
      bench.device.obeysAllTheSame = true;
      await bench.look();
      bench.device.answers = ["not_done", "not_done"]; // it takes its time to show
      expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
      expect(bench.device).toMatchObject({ acts: 1, undone: 0 });
      expect(bench.steps).toMatchObject([{ state: "SUCCEEDED", retryCount: 0 }]);
    },
  );

  const PLAIN_ANSWERS = [
    ["503", "busy", 503],
    ["429", "busy", 429],
    ["404", "protocol", 404],
    ["400", "refused", 400],
  ] as const;
  test.each(PLAIN_ANSWERS)("but with a plain %s has failed", async (_, reason, status) => {
    const bench = new Bench();
    await bench.announce();
    bench.device.failActing = new DeviceFailure("retry", reason, "no", { status });
    await bench.look();
    expect(bench.steps).toMatchObject([{ retryCount: 1, evidence: null, unanswered: null }]);
  });

  test("that was refused begins anew, with evidence of its own", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.device.failActing = new DeviceFailure("retry", "busy", "come back later");
    await bench.look();
    expect(bench.steps).toMatchObject([{ retryCount: 1, evidence: null, actingAt: null }]);
  });
});

describe("what is no failure of the step", () => {
  test.each([
    ["a database that is away", new AppError("unavailable", "the database cannot be reached"), false],
    ["a stop of this process", new Error("shutting down"), true],
  ])("%s counts as no attempt", async (_, error, stops) => {
    const bench = new Bench();
    await bench.announce();
    const before = bench.steps;
    bench.device.failActing = error;
    if (stops) bench.stop.abort(error);
    await expect(bench.look()).rejects.toBe(error);
    expect(bench.steps).toEqual(before);
  });

  test("but an error of our own ends the run, as one that trying again does not help", async () => {
    const bench = new Bench();
    bench.maxRetries = 5;
    bench.device.failActing = new TypeError("x is not a function");
    const outcome = await bench.untilEnd();
    expect(outcome).toMatchObject({
      event: "step_failed",
      facts: { error: { code: "PANIC", retryable: false, message: "first: x is not a function" } },
      effects: [{ cause: "run_failed" }, { type: "log" }],
    });
    expect(bench.steps).toMatchObject([{ state: "FAILED", retryCount: 1 }]);
  });
});

test("a run whose steps do not fit its plan ends with that, and leaves what it had begun to the attempt after", async () => {
  const bench = new Bench();
  bench.planned = ["first", "second"];
  await bench.announce();
  bench.steps = bench.steps.map((step) => ({ ...step, name: "second" }));
  expect(await bench.look()).toMatchObject({
    event: "step_failed",
    message: expect.stringContaining("has the status of second where that of first belongs"),
    facts: { error: { code: "PANIC", retryable: false } },
    effects: [{ cause: "run_failed" }, {}],
  });
  expect(bench.steps).toMatchObject([{ name: "second", state: "FAILED", finishedAt: bench.now }]);
  expect(nextAttempt(bench, "rerun")).toMatchObject({ steps: [], takeBackFirst: { step: "second" } });
});

test("a run's end has its machine looked at where a node was cordoned for it, and only there", async () => {
  const bench = new Bench();
  expect((await bench.untilEnd()).effects).not.toContainEqual(expect.objectContaining({ type: "wake" }));
  const other = new Bench();
  other.cordoned = { cluster: "c1", node: "n1" };
  expect((await other.untilEnd()).effects).toContainEqual({ type: "wake", kind: "machine", id: "m-1" });
});

test("what the server says of its own things fails the step at once, for a person, and is no panic", async () => {
  const bench = new Bench();
  bench.maxRetries = 5;
  bench.device.failActing = new AppError("failed_precondition", "secret cluster/c1 was encrypted with another key");
  const outcome = await bench.untilEnd();
  expect(outcome).toMatchObject({
    event: "step_failed",
    facts: { error: { code: "EXECUTION_FAILED", retryable: false, message: expect.stringContaining("another key") } },
  });
  expect(bench.steps).toMatchObject([{ state: "FAILED", retryCount: 1, needsPerson: true }]);
});

describe("a look", () => {
  test("that saw nothing new writes nothing", async () => {
    const bench = new Bench();
    bench.device.answers = ["in_progress", "in_progress"];
    await bench.look();
    expect(bench.steps).toMatchObject([{ evidence: { seen: 0 }, actingAt: null }]);
    const again = await bench.look();
    expect(again).toMatchObject({ type: "waiting", effects: [] });
    expect(again.facts).toBeUndefined();
  });
});

describe("a script", () => {
  test("that is not the one of the run's start is not run", async () => {
    const bench = new Bench();
    bench.scripts = { "a.sh": "sha256:old" };
    Object.assign(bench.device.step, {
      before: ({ targets }: { targets: StepTargets }) => targets.script("a.sh"),
    });
    expect(await bench.untilEnd()).toMatchObject({
      event: "step_failed",
      message: expect.stringMatching(/a\.sh is sha256:new now, but was sha256:old/),
    });
  });
});

describe("a cancel", () => {
  test("takes nothing back where nothing was begun", async () => {
    const bench = new Bench();
    bench.device.answers = ["in_progress"];
    await bench.look();
    bench.cancelRequestedAt = bench.now;
    expect(await bench.look()).toMatchObject({ event: "canceled", facts: { residue: [] } });
    expect(bench.device.undone).toBe(0);
  });

  test("takes back what can be taken back, and ends", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.cancelRequestedAt = bench.now;
    expect(await bench.look()).toMatchObject({
      event: "canceled",
      facts: { residue: [] },
      effects: [{ cause: "run_canceled" }, {}],
    });
    expect(bench.device.undone).toBe(1);
  });

  test("ends also when nothing can be taken back, and lists what may be left", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.cancelRequestedAt = bench.now;
    Object.assign(bench.device.step, { undo: () => Promise.reject(new StepFailure("retry", "the BMC is dead")) });
    const outcome = await bench.look();
    expect(outcome).toMatchObject({ event: "canceled" });
    expect(outcome.facts?.residue).toEqual([expect.stringContaining("the BMC is dead")]);
  });

  test("lists what a step has done for good although it was taken back, and tells the machine", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.cancelRequestedAt = bench.now;
    Object.assign(bench.device.step, { undoIsPartial: true, residue: () => "half of it is done" });
    const residue = ["first: half of it is done"];
    expect(await bench.look()).toMatchObject({
      event: "canceled",
      facts: { residue },
      effects: [{ cause: "run_canceled", facts: { residue } }, {}],
    });
    expect(bench.device.undone).toBe(1);
    expect(bench.logged).toContain("stays behind: first: half of it is done\n");
  });

  test("is told to the machine by its cause, and not with an empty text in its place", async () => {
    const bench = new Bench();
    bench.cancelRequestedAt = bench.now;
    const [moved] = (await bench.look()).effects ?? [];
    expect(moved).toMatchObject({ type: "move", cause: "run_canceled" });
    expect(moved).not.toHaveProperty("message");
  });
});

describe("a cancel", () => {
  test("does not give up on taking back when the database is away: the look after it does", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.cancelRequestedAt = bench.now;
    const { undo } = bench.device.step;
    const away = new AppError("unavailable", "the database cannot be reached");
    Object.assign(bench.device.step, { undo: () => Promise.reject(away) });
    await expect(bench.look()).rejects.toBe(away);
    Object.assign(bench.device.step, { undo });
    expect(await bench.look()).toMatchObject({ event: "canceled", facts: { residue: [] } });
    expect(bench.device.undone).toBe(1);
  });

  test("that interrupts an action is no failed attempt, and takes back by what was noted before it", async () => {
    const bench = new Bench();
    await bench.announce();
    const before = bench.steps;
    Object.assign(bench.device.step, {
      act: async () => {
        bench.device.acts += 1;
        bench.stop.abort(new AppError("cancelled", "run run-1 is to be ended"));
        throw new StepFailure("retry", "work on the BMC was stopped before it answered");
      },
    });
    await expect(bench.look()).rejects.toThrow("was stopped");
    expect(bench.steps).toEqual(before);
    expect(bench.device.undone).toBe(0);
    bench.stop = new AbortController();
    bench.cancelRequestedAt = bench.now;
    expect(await bench.look()).toMatchObject({ event: "canceled" });
    expect(bench.device).toMatchObject({ acts: 1, undone: 1 });
  });

  test("passes on what the attempt before it had left and it could not take back either", async () => {
    const bench = nextAttempt(await failedBench(), "restart_clean");
    Object.assign(bench.device.step, { undo: () => Promise.reject(new StepFailure("retry", "the BMC is dead")) });
    bench.cancelRequestedAt = bench.now;
    expect(await bench.look()).toMatchObject({
      event: "canceled",
      facts: { residue: [expect.stringContaining("the BMC is dead")] },
    });
    expect(nextAttempt(bench, "resume").takeBackFirst).toEqual({ step: "first", evidence: { seen: 0 } });
  });
});

describe("a process that is being stopped", () => {
  test("announces no action, and writes what it has noted for whoever goes on", async () => {
    const bench = new Bench();
    bench.mayBegin = false;
    expect(await bench.look()).toMatchObject({ type: "waiting", reason: "first: about to act", after: 0 });
    expect(bench.steps).toMatchObject([{ evidence: { seen: 0 }, actingAt: null }]);
  });

  test("does what it has announced, writes that, and announces nothing after it", async () => {
    const bench = new Bench();
    bench.planned = ["first", "second"];
    await bench.announce();
    bench.mayBegin = false;
    expect(await bench.look()).toMatchObject({ type: "waiting", reason: "first: done", after: 0 });
    expect(bench.device.acts).toBe(1);
    expect(bench.steps).toMatchObject([{ name: "first", state: "SUCCEEDED" }]);
  });
});

describe("a server without the provider of the run's machine", () => {
  test("says so by name, as a failed attempt that another server may make good", async () => {
    const bench = new Bench();
    Object.assign(bench.device.step, { needs: ["exec"] });
    await bench.look();
    expect(bench.steps).toMatchObject([
      {
        state: "RUNNING",
        retryCount: 1,
        message: "this server does not have the provider test, which a step of kind poke needs",
      },
    ]);
    expect(await bench.untilEnd()).toMatchObject({
      event: "step_failed",
      facts: { error: { code: "EXECUTION_FAILED", retryable: true } },
    });
  });

  test("names what one that it has cannot do", async () => {
    const bench = new Bench();
    bench.can = { power: {} as Capabilities["power"] };
    Object.assign(bench.device.step, { needs: ["exec", "power"] });
    await bench.look();
    expect(bench.steps[0]?.message).toBe(
      "the provider test of this server cannot do exec, which a step of kind poke needs",
    );
  });

  test("lists by name why it could not take back", async () => {
    const bench = new Bench();
    await bench.announce();
    Object.assign(bench.device.step, { needs: ["exec"] });
    bench.cancelRequestedAt = bench.now;
    const outcome = await bench.look();
    expect(outcome.facts?.residue).toEqual([expect.stringContaining("this server does not have the provider test")]);
    expect(bench.device.undone).toBe(0);
  });
});

/** A bench whose run has failed or was canceled, as the next attempt at its job. */
function nextAttempt(bench: Bench, action: NextAttempt): Bench {
  const { steps, takeBackFirst } = inheritFrom(bench, action);
  const anew = { residue: [], cancelRequestedAt: null, startedAt: bench.now };
  Object.assign(bench, { id: "run-2", action, steps, takeBackFirst, ...anew });
  bench.device.failActing = undefined;
  bench.logged = [];
  return bench;
}

/** One that could not take back what it had begun: the device does not answer to that. */
async function unsettledBench(): Promise<Bench> {
  const bench = new Bench();
  bench.maxRetries = 0;
  bench.device.failUndoing = new StepFailure("retry", "the BMC is dead");
  bench.device.failActing = new StepFailure("fail", "refused");
  expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
  return bench;
}

/** What keeps us from a device, which then has not been asked at all. */
const NOT_LET_IN = [
  ["the BMC rejects the credentials", new DeviceFailure("fail", "credentials", "wrong credentials (401)")],
  ["there are no credentials", new NoCredentials("there are no BMC credentials for machine m-1")],
  ["another certificate is shown", new DeviceFailure("fail", "certificate", "another was pinned")],
  ["another host key is shown", new DeviceFailure("intervene", "certificate", "another key is pinned")],
] as const;

async function failedBench(planned = ["first"]): Promise<Bench> {
  const bench = new Bench();
  bench.planned = planned;
  bench.maxRetries = 0;
  bench.device.failActing = new StepFailure("fail", "refused");
  expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
  return bench;
}

describe("a step that failed after it had begun", () => {
  test("is taken back, for good and before another attempt alike", async () => {
    const bench = new Bench();
    bench.device.failActing = new StepFailure("retry", "no answer");
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed", facts: { residue: [] } });
    expect(bench.device.undone).toBe(2);
    expect(bench.steps).toMatchObject([{ state: "FAILED", toTakeBack: null }]);
  });

  test("lists what could not be taken back, and keeps what is needed to try again", async () => {
    const bench = new Bench();
    bench.maxRetries = 0;
    bench.device.failActing = new StepFailure("fail", "refused");
    Object.assign(bench.device.step, { undo: () => Promise.reject(new StepFailure("retry", "the BMC is dead")) });
    await bench.untilEnd();
    expect(bench.residue).toEqual([expect.stringMatching(/^first: .*the BMC is dead/)]);
    expect(bench.steps).toMatchObject([{ toTakeBack: { seen: 0 } }]);
  });

  test("is not taken back under an attempt that goes by its evidence", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.device.failActing = new DeviceFailure("retry", "unreachable", "the connection was closed");
    await bench.look();
    bench.now = new Date(bench.now.getTime() + 61_000);
    await bench.look();
    expect(bench.device.undone).toBe(0);
    expect(bench.steps).toMatchObject([{ retryCount: 1, toTakeBack: { seen: 0 } }]);
  });

  test("lists what it has done for good although it was taken back, unless the device said no", async () => {
    const residueOf = async (failing: (bench: Bench) => void) => {
      const bench = new Bench();
      bench.maxRetries = 0;
      Object.assign(bench.device.step, { undoIsPartial: true, residue: () => "half of it is done" });
      await bench.announce();
      failing(bench);
      await bench.untilEnd();
      expect(bench.device.undone).toBe(1);
      return bench.residue;
    };
    const halfDone = await residueOf((bench) => {
      Object.assign(bench.device.step, {
        probe: async () => {
          if (bench.device.acts > 0) throw new StepFailure("fail", "ended with exit code 3");
          return "not_done";
        },
      });
    });
    expect(halfDone).toEqual(["first: half of it is done"]);
    const refused = await residueOf((bench) => {
      bench.device.failActing = new StepFailure("fail", "refused");
    });
    expect(refused).toEqual([]);
  });

  describe("and could not be taken back then", () => {
    const dead = () => Promise.reject(new DeviceFailure("retry", "unreachable", "no route"));

    /** The first attempt has failed, and what it began goes on where nobody reaches it. */
    async function betweenAttempts(undo = dead): Promise<Bench> {
      const bench = new Bench();
      const step = bench.device.step;
      Object.assign(step, { undo, residue: () => "it may still run" });
      await bench.announce();
      bench.device.failActing = new StepFailure("retry", "ended with exit code 3");
      await bench.look();
      bench.device.failActing = undefined;
      expect(bench.steps).toMatchObject([{ retryCount: 1, evidence: null, toTakeBack: { seen: 0 } }]);
      bench.now = new Date(bench.now.getTime() + 2_000);
      return bench;
    }

    test("is taken back before another attempt begins", async () => {
      const bench = await betweenAttempts();
      for (let looks = 0; looks < 3; looks += 1) {
        const outcome = await bench.look();
        expect(outcome).toMatchObject({ type: "waiting", reason: expect.stringContaining("no route") });
        if (outcome.type === "waiting") bench.now = new Date(bench.now.getTime() + outcome.after);
      }
      expect(bench.steps).toMatchObject([{ evidence: null, toTakeBack: { seen: 0 } }]);
      const undone: unknown[] = [];
      Object.assign(bench.device.step, {
        undo: async ({ evidence }: { evidence: unknown }) => {
          expect(bench.device.acts).toBe(0);
          undone.push(evidence);
        },
      });
      expect(await bench.untilEnd()).toMatchObject({ event: "finished", facts: { residue: [] } });
      expect(undone).toEqual([{ seen: 0 }]);
      expect(bench.device.acts).toBe(1);
    });

    test("fails the next attempt too when its time is over, is never begun beside it, and is listed", async () => {
      const bench = await betweenAttempts();
      expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
      expect(bench.device.acts).toBe(0);
      expect(bench.steps).toMatchObject([{ retryCount: 2, toTakeBack: { seen: 0 } }]);
      expect(bench.residue).toEqual(["first: it may still run (undoing it failed: no route)"]);
    });

    test.each(NOT_LET_IN)(
      "fails the run at once and stays to be taken back where %s: waiting would change nothing, and somebody may",
      async (_, error) => {
        const bench = await betweenAttempts(() => Promise.reject(error));
        const { now } = bench;
        expect(await bench.untilEnd()).toMatchObject({
          event: "step_failed",
          facts: { error: { retryable: true, message: expect.stringContaining(error.message) } },
        });
        expect([bench.now, bench.device.acts]).toEqual([now, 0]);
        expect(bench.steps).toMatchObject([{ toTakeBack: { seen: 0 } }]);
        expect(bench.residue).toEqual([`first: it may still run (undoing it failed: ${error.message})`]);
      },
    );

    test("is listed and left where the device refuses, since waiting would change nothing", async () => {
      const bench = await betweenAttempts(() => Promise.reject(new DeviceFailure("fail", "refused", "cannot")));
      expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
      expect(bench.device.acts).toBe(1);
      expect(bench.residue).toEqual(["first: it may still run (undoing it was refused: cannot)"]);
    });
  });

  test("that calls for a person is not called retryable", async () => {
    const bench = new Bench();
    bench.device.failActing = new StepFailure("intervene", "another machine answers");
    expect(await bench.untilEnd()).toMatchObject({
      facts: { error: { retryable: false, details: { step: "first" } } },
    });
  });

  test("is taken back by a cancel that comes between two attempts", async () => {
    const bench = new Bench();
    Object.assign(bench.device.step, { undo: () => Promise.reject(new StepFailure("retry", "not now")) });
    bench.device.failActing = new StepFailure("retry", "no answer");
    await bench.announce();
    await bench.look();
    expect(bench.steps).toMatchObject([{ retryCount: 1, evidence: null, toTakeBack: { seen: 0 } }]);
    let evidence: unknown;
    Object.assign(bench.device.step, {
      undo: async (context: { evidence: unknown }) => {
        evidence = context.evidence;
      },
    });
    bench.cancelRequestedAt = bench.now;
    expect(await bench.look()).toMatchObject({ event: "canceled", facts: { residue: [] } });
    expect(evidence).toEqual({ seen: 0 });
  });
});

describe("a retry", () => {
  test("does the failed step anew and leaves proven ones alone", async () => {
    const bench = new Bench();
    bench.planned = ["first", "second"];
    bench.maxRetries = 0;
    bench.device.answers = ["not_done", "not_done", "done", "not_done", "not_done"];
    for (let looks = 0; bench.steps.at(-1)?.name !== "second"; looks += 1) {
      const outcome = await bench.look();
      if (outcome.type === "waiting") bench.now = new Date(bench.now.getTime() + outcome.after);
      expect(looks).toBeLessThan(10);
    }
    bench.device.failActing = new StepFailure("fail", "refused");
    await bench.untilEnd();
    expect(bench.device.acts).toBe(1);
    nextAttempt(bench, "retry");
    bench.device.answers = ["not_done", "not_done", "done"];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device.acts).toBe(2);
    expect(bench.steps).toMatchObject([
      { name: "first", carriedOver: true },
      { name: "second", carriedOver: false, state: "SUCCEEDED", retryCount: 0 },
    ]);
  });
});

describe("a resume", () => {
  test("does nothing where the step is done by now", async () => {
    const bench = nextAttempt(await failedBench(), "resume");
    bench.device.answers = ["done"];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device.acts).toBe(0);
    expect(bench.steps).toMatchObject([{ state: "SUCCEEDED", resumed: true, startedAt: expect.any(Date) }]);
  });

  test("does the step where it is not, once the device has had its time to show it", async () => {
    const bench = nextAttempt(await failedBench(), "resume");
    bench.device.answers = ["not_done"];
    expect(await bench.look()).toMatchObject({ type: "waiting" });
    expect(bench.device.acts).toBe(0);
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device.acts).toBe(1);
  });

  test("takes an old failure for no failure of its own: the step is done anew, with evidence of now", async () => {
    const bench = await failedBench();
    let failures = 0;
    const { probe } = bench.device.step;
    Object.assign(bench.device.step, {
      probe: async () => {
        failures += 1;
        if (failures === 1) throw new StepFailure("retry", "the script ended with exit code 3");
        return probe({} as never);
      },
    });
    nextAttempt(bench, "resume");
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device.acts).toBe(1);
    expect(bench.steps).toMatchObject([{ state: "SUCCEEDED", retryCount: 0, resumed: false }]);
    expect(bench.logged.join("")).toContain("by what was noted before: the script ended with exit code 3");
  });

  test("waits for a device that does not answer, by the evidence of before", async () => {
    const bench = await failedBench();
    bench.maxRetries = 2;
    const { probe } = bench.device.step;
    let asked = 0;
    Object.assign(bench.device.step, {
      probe: async () => {
        asked += 1;
        if (asked === 1) throw new DeviceFailure("retry", "unreachable", "no route");
        return probe({} as never);
      },
    });
    nextAttempt(bench, "resume");
    await bench.look();
    expect(bench.steps).toMatchObject([{ retryCount: 0, resumed: true, evidence: { seen: 0 }, message: "no route" }]);
    bench.device.answers = ["done"];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device.acts).toBe(0);
  });
});

describe("a restart clean", () => {
  test("takes back first, lists what stays, and begins from the first step", async () => {
    const bench = await failedBench(["first", "second"]);
    const undone = bench.device.undone;
    nextAttempt(bench, "restart_clean");
    await bench.look();
    expect(bench.device.undone).toBe(undone + 1);
    expect(bench.device.acts).toBe(0);
    expect(await bench.untilEnd()).toMatchObject({ event: "finished", facts: { residue: [] } });
    expect(bench.steps.map(({ name, carriedOver }) => [name, carriedOver])).toEqual([
      ["first", false],
      ["second", false],
    ]);
  });

  test("goes on although nothing could be taken back, and says so at its end", async () => {
    const bench = await failedBench();
    nextAttempt(bench, "restart_clean");
    Object.assign(bench.device.step, { undo: () => Promise.reject(new StepFailure("fail", "it has no eject")) });
    expect(await bench.untilEnd()).toMatchObject({
      event: "finished",
      facts: { residue: [expect.stringContaining("it has no eject")] },
    });
  });

  test("tries again while the device does not answer, and begins nothing before", async () => {
    const bench = nextAttempt(await failedBench(), "restart_clean");
    const { undo } = bench.device.step;
    Object.assign(bench.device.step, { undo: () => Promise.reject(new StepFailure("retry", "the BMC is dead")) });
    expect(await bench.look()).toMatchObject({
      type: "waiting",
      reason: expect.stringMatching(/^what step first of the attempt before has left is not taken back yet: .*is dead/),
    });
    expect(bench.steps).toEqual([]);
    Object.assign(bench.device.step, { undo });
    expect(await bench.untilEnd()).toMatchObject({ event: "finished", facts: { residue: [] } });
  });

  test("fails when it does not answer for as long as the step may take, and passes on what is to be taken back", async () => {
    const bench = nextAttempt(await failedBench(), "restart_clean");
    Object.assign(bench.device.step, { undo: () => Promise.reject(new StepFailure("retry", "the BMC is dead")) });
    expect(await bench.untilEnd()).toMatchObject({
      event: "step_failed",
      facts: { error: { retryable: true, message: expect.stringContaining("is not taken back within 1m") } },
    });
    expect(bench.device.acts).toBe(0);
    expect(bench.takeBackFirst).toEqual({ step: "first", evidence: { seen: 0 } });
    expect(nextAttempt(bench, "retry").takeBackFirst).toEqual({ step: "first", evidence: { seen: 0 } });
  });

  test("that is canceled before it has taken back does so in its end", async () => {
    const bench = await failedBench();
    const undone = bench.device.undone;
    nextAttempt(bench, "restart_clean");
    bench.cancelRequestedAt = bench.now;
    expect(await bench.look()).toMatchObject({ event: "canceled", facts: { takeBackFirst: null } });
    expect(bench.device.undone).toBe(undone + 1);
  });
});

describe("a rerun", () => {
  test("takes back first what was left open, and begins nothing before", async () => {
    const bench = await unsettledBench();
    nextAttempt(bench, "rerun");
    const { undone } = bench.device;
    expect(await bench.look()).toMatchObject({
      reason: expect.stringMatching(/^what step first of the attempt before has left is not taken back yet: /),
    });
    expect(bench.device).toMatchObject({ acts: 0, undone });
    bench.device.failUndoing = undefined;
    expect(await bench.untilEnd()).toMatchObject({ event: "finished", facts: { residue: [] } });
    expect(bench.device).toMatchObject({ acts: 1, undone: undone + 1 });
    expect(bench.logged.join("")).toMatch(/what it had begun was taken back[\s\S]*step first begins/);
  });

  test("takes nothing back where the attempt before has", async () => {
    const bench = await failedBench();
    const { undone } = nextAttempt(bench, "rerun").device;
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device.undone).toBe(undone);
  });
});

describe("what cannot be taken back because we are not let in", () => {
  const UNDONE_FIRST = { step: "first", evidence: { seen: 0 } };
  const ACTIONS = ["retry", "rerun", "restart_clean"] as const;

  /** The step has failed, or its run was canceled, and then nothing could be taken back. */
  async function shutOutBench(error: Error, end: "fails" | "is canceled"): Promise<Bench> {
    const bench = new Bench();
    bench.maxRetries = 0;
    bench.device.failUndoing = error;
    await bench.announce();
    if (end === "fails") bench.device.failActing = new StepFailure("fail", "refused");
    else bench.cancelRequestedAt = bench.now;
    await bench.untilEnd();
    expect(bench.machineResidue).toEqual([
      `first: may have left something behind (undoing it failed: ${error.message})`,
    ]);
    return bench;
  }

  test.each(NOT_LET_IN.flatMap(([why, error]) => ACTIONS.map((action) => [why, action, error] as const)))(
    "(%s) fails a %s at once and is kept, as often as it is tried; then it is taken back before anything is begun",
    async (_, action, error) => {
      const bench = await shutOutBench(error, "fails");
      for (let attempts = 0; attempts < 2; attempts += 1) {
        nextAttempt(bench, action);
        const outcome = await bench.look();
        expect(outcome).toMatchObject({
          event: "step_failed",
          facts: { takeBackFirst: UNDONE_FIRST, error: { retryable: true, message: expect.any(String) } },
        });
        expect(outcome.type === "happened" && outcome.message).toMatch(
          /^first: what step first of the attempt before has left is not taken back: /,
        );
        expect(outcome.type === "happened" && outcome.message).toContain(error.message);
        expect(bench.device.acts).toBe(0);
        expect(bench.machineResidue).toHaveLength(1);
      }
      nextAttempt(bench, action);
      bench.device.failUndoing = undefined;
      expect(await bench.look()).toMatchObject({ reason: "first: taken back", facts: { takeBackFirst: null } });
      expect(bench.device).toMatchObject({ acts: 0, undone: 1 });
      expect(await bench.untilEnd()).toMatchObject({ event: "finished", facts: { residue: [] } });
      expect(bench.machineResidue).toEqual([]);
    },
  );

  test("is listed once, with why it failed the last time", async () => {
    const bench = nextAttempt(await shutOutBench(NOT_LET_IN[0][1], "fails"), "retry");
    bench.device.failUndoing = new DeviceFailure("fail", "credentials", "wrong credentials: rejected since noon");
    await bench.look();
    expect(bench.machineResidue).toEqual([expect.stringContaining("(undoing it failed: wrong credentials: rejected")]);
  });

  test("names the command that gives other credentials", async () => {
    const bench = nextAttempt(await shutOutBench(NOT_LET_IN[0][1], "fails"), "retry");
    expect(await bench.look()).toMatchObject({
      message: expect.stringContaining("millwright machine set-credentials m-1"),
    });
  });

  test("is passed on by a cancel, which does not wait for it", async () => {
    const bench = await shutOutBench(NOT_LET_IN[0][1], "is canceled");
    nextAttempt(bench, "rerun");
    expect(bench.takeBackFirst).toEqual(UNDONE_FIRST);
    bench.cancelRequestedAt = bench.now;
    expect(await bench.look()).toMatchObject({ event: "canceled", facts: { takeBackFirst: UNDONE_FIRST } });
    nextAttempt(bench, "resume");
    bench.device.failUndoing = undefined;
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device).toMatchObject({ acts: 1, undone: 1 });
    expect(bench.machineResidue).toEqual([]);
  });

  test("keeps what was noted for a resume as well, which goes by it once we are let in", async () => {
    const bench = nextAttempt(await shutOutBench(NOT_LET_IN[0][1], "fails"), "resume");
    const { probe } = bench.device.step;
    Object.assign(bench.device.step, { probe: () => Promise.reject(NOT_LET_IN[0][1]) });
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
    expect(bench.steps).toMatchObject([{ evidence: { seen: 0 }, toTakeBack: { seen: 0 } }]);
    nextAttempt(bench, "resume");
    Object.assign(bench.device.step, { probe });
    bench.device.answers = ["done"];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device).toMatchObject({ acts: 0, undone: 0 });
    expect(bench.machineResidue).toEqual([]);
  });
});

describe("what is left inside the system", () => {
  const SILENT = ["nobody answers", new DeviceFailure("retry", "unreachable", "no route")] as const;
  const OF_JOIN = { step: "join", evidence: { seen: 0 } };
  const LISTED = (error: Error) => `join: it may be joining (undoing it failed: ${error.message})`;

  /** Canceled in its join, which could not be taken back then and cannot now. */
  async function leftInside(planned: readonly string[], error: Error): Promise<Bench> {
    const bench = new Bench();
    bench.planned = [...planned];
    const { step } = bench.device;
    const quick = { ...step, probe: async () => "done" as const };
    let acts = 0;
    const join = {
      ...step,
      kind: "join",
      insideSystem: true,
      residue: () => "it may be joining",
      act: async () => {
        acts += 1;
      },
      probe: async () => (acts > 0 ? "done" : "not_done"),
      undo: () => Promise.reject(error),
    };
    bench.kinds = [step, { ...quick, kind: "netboot" }, { ...quick, kind: "repave" }, join];
    await bench.announce();
    expect(bench.steps.at(-1)).toMatchObject({ name: "join", state: "RUNNING" });
    bench.cancelRequestedAt = bench.now;
    expect(await bench.look()).toMatchObject({ event: "canceled" });
    expect(bench.machineResidue).toEqual([LISTED(error)]);
    return bench;
  }

  test.each(
    [...NOT_LET_IN, SILENT].flatMap(([why, error]) =>
      (["rerun", "restart_clean"] as const).map((action) => [why, action, error] as const),
    ),
  )("(%s) keeps no %s from the installation that ends it: it is listed until then", async (_, action, error) => {
    const bench = await leftInside(["netboot", "repave", "join"], error);
    nextAttempt(bench, action);
    expect(bench.takeBackFirst).toEqual(OF_JOIN);
    expect(await bench.look()).toMatchObject({
      type: "waiting",
      after: 0,
      facts: { takeBackFirst: null, residue: [LISTED(error)] },
    });
    expect(bench.logged.join("")).toContain("the installation ends it");
    expect(bench.machineResidue).toEqual([LISTED(error)]);
    expect(await bench.untilEnd()).toMatchObject({ event: "finished", facts: { residue: [] } });
    expect(bench.machineResidue).toEqual([]);
  });

  test("is in the way of an attempt that keeps the system as it is installed", async () => {
    const bench = nextAttempt(await leftInside(["netboot", "repave", "join"], NOT_LET_IN[0][1]), "retry");
    expect(await bench.look()).toMatchObject({ event: "step_failed", facts: { takeBackFirst: OF_JOIN } });
  });

  test("is in the way where something is begun beside it before the installation", async () => {
    const bench = nextAttempt(await leftInside(["join", "repave"], SILENT[1]), "rerun");
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed", facts: { takeBackFirst: OF_JOIN } });
  });

  test("does not let through what is left at the BMC beside it, and is kept with that", async () => {
    const bench = await leftInside(["netboot", "repave", "join"], NOT_LET_IN[0][1]);
    nextAttempt(bench, "rerun");
    const both = { ...OF_JOIN, more: [{ step: "repave", evidence: { seen: 0 } }] };
    bench.takeBackFirst = both;
    bench.device.failUndoing = SILENT[1];
    expect(await bench.look()).toMatchObject({
      type: "waiting",
      reason: expect.stringContaining("not taken back yet"),
    });
    expect(bench.takeBackFirst).toEqual(both);
    bench.device.failUndoing = NOT_LET_IN[0][1];
    expect(await bench.look()).toMatchObject({ event: "step_failed", facts: { takeBackFirst: both } });
  });
});

test.each([
  ["Redfish", 403],
  ["IPMI", 0xd4],
])("a BMC that forbids over %s to take back has said no, and blocks no later attempt", async (_, status) => {
  const bench = await failedBench();
  nextAttempt(bench, "restart_clean");
  bench.device.failUndoing = new DeviceFailure("fail", "credentials", "eject is forbidden", { status });
  expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
  expect(bench.machineResidue).toEqual([expect.stringContaining("(undoing it was refused: eject is forbidden)")]);
});

describe("what is listed on the machine", () => {
  const NOT_UNDONE = /^first: .*\(undoing it failed: the BMC is dead\)$/;

  test.each(["retry", "rerun", "restart_clean"] as const)(
    "is not any more once a %s has taken it back",
    async (action) => {
      const bench = await unsettledBench();
      expect(bench.machineResidue).toEqual([expect.stringMatching(NOT_UNDONE)]);
      nextAttempt(bench, action);
      bench.device.failUndoing = undefined;
      expect(await bench.look()).toMatchObject({ reason: "first: taken back" });
      expect(bench.machineResidue).toEqual([]);
    },
  );

  test("is not any more once a cancel has taken it back", async () => {
    const bench = nextAttempt(await unsettledBench(), "rerun");
    bench.device.failUndoing = undefined;
    bench.cancelRequestedAt = bench.now;
    expect(await bench.look()).toMatchObject({ event: "canceled" });
    expect(bench.machineResidue).toEqual([]);
  });

  test("stays as far as the step has done something for good", async () => {
    const bench = await unsettledBench();
    Object.assign(bench.device.step, { undoIsPartial: true, residue: () => "half of it is done" });
    bench.machineResidue = ["first: half of it is done (undoing it failed: the BMC is dead)"];
    nextAttempt(bench, "rerun");
    bench.device.failUndoing = undefined;
    await bench.look();
    expect(bench.machineResidue).toEqual(["first: half of it is done"]);
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.machineResidue).toEqual([]); // done after all
  });

  test("is not any more once a resume has found the step done by what was noted then", async () => {
    const bench = nextAttempt(await unsettledBench(), "resume");
    bench.device.answers = ["done"];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device.acts).toBe(0);
    expect(bench.machineResidue).toEqual([]);
  });

  test.each([
    ["was done", "SUCCEEDED"],
    ["was taken back", "CANCELED"],
  ])("stays where a step of another plan has the same name and %s", async (_, end) => {
    const bench = new Bench();
    Object.assign(bench.device.step, { residue: () => "script b.sh may still run" });
    const theirs = "first: script a.sh may still run (undoing it failed: no route)";
    bench.machineResidue = [theirs, "first: script b.sh may still run (undoing it failed: no route)"];
    await bench.announce();
    if (end === "CANCELED") bench.cancelRequestedAt = bench.now;
    await bench.untilEnd();
    expect(bench.machineResidue).toEqual([theirs]);
  });

  test("stays where a device refuses to take it back, whatever is done after it", async () => {
    const bench = await failedBench();
    bench.device.failUndoing = new StepFailure("fail", "it has no eject");
    expect(await nextAttempt(bench, "restart_clean").untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.machineResidue).toEqual([expect.stringContaining("(undoing it was refused: it has no eject)")]);
  });
});

describe("an adoption", () => {
  test("that fails leaves to the attempt after it only what it did not prove", async () => {
    const bench = await unsettledBench();
    bench.planned = ["first", "second"];
    nextAttempt(bench, "adopt");
    expect(bench.takeBackFirst).toMatchObject({ step: "first" });
    bench.device.answers = ["done"];
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed", facts: { takeBackFirst: null } });
    expect(bench.steps).toMatchObject([
      { name: "first", state: "SUCCEEDED" },
      { name: "second", state: "FAILED" },
    ]);
  });

  test("never acts, and ends with the step that could not be proven", async () => {
    const bench = nextAttempt(await failedBench(), "adopt");
    const undone = bench.device.undone;
    expect(await bench.untilEnd()).toMatchObject({
      event: "step_failed",
      message: "first: cannot be taken as done",
      effects: [{ cause: "run_failed" }],
    });
    expect(bench.device).toMatchObject({ acts: 0, undone });
  });

  test("succeeds when every step is seen to be done", async () => {
    const bench = nextAttempt(await failedBench(["first", "second"]), "adopt");
    bench.device.answers = ["done", "done"];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device.acts).toBe(0);
  });

  test("asks what can be seen without evidence where the evidence does not tell", async () => {
    const bench = nextAttempt(await failedBench(), "adopt");
    Object.assign(bench.device.step, { observe: async () => ({ state: "done", message: "seen as it is" }) });
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.steps).toMatchObject([{ state: "SUCCEEDED", message: "seen as it is" }]);
  });

  test("waits for what is under way, at most as long as the step may take", async () => {
    const bench = nextAttempt(await failedBench(), "adopt");
    bench.device.answers = Array.from({ length: 50 }, () => "in_progress" as const);
    expect(await bench.untilEnd(60)).toMatchObject({
      event: "step_failed",
      message: expect.stringContaining("not done within 1m"),
    });
    expect(bench.device.acts).toBe(0);
  });
});

describe("what a proven step has set for the next boot", () => {
  /** Two steps for the next boot, of which the second fails for good. */
  async function failingLater(prepare: (bench: Bench) => void = () => undefined): Promise<Bench> {
    const bench = new Bench();
    bench.planned = ["first", "second"];
    bench.maxRetries = 0;
    Object.assign(bench.device.step, { forNextBoot: true });
    prepare(bench);
    const { before } = bench.device.step;
    let begun = 0;
    bench.device.step.before = async (context) => {
      begun += 1;
      if (begun > 1) throw new StepFailure("fail", "refused");
      return before(context);
    };
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
    return bench;
  }

  test("is taken back when a later step fails, and set again before the attempt after it acts", async () => {
    const bench = await failingLater();
    expect(bench.device).toMatchObject({ acts: 1, undone: 1 });
    expect(bench.steps).toMatchObject([{ name: "first", state: "SUCCEEDED", takenBack: true }, { state: "FAILED" }]);
    const again = nextAttempt(bench, "retry");
    again.device.acts = 0; // taken back, it shows nothing of it
    again.device.step.before = async () => ({ seen: 0 });
    expect(await again.untilEnd()).toMatchObject({ event: "finished" });
    expect(again.logged.join("")).toContain("first was taken back meanwhile, and is done again first");
    expect(again.device.acts).toBe(1);
    expect(again.steps).toMatchObject([
      { name: "first", state: "SUCCEEDED", takenBack: false, carriedOver: false },
      { name: "second", state: "SUCCEEDED" },
    ]);
  });

  test("is set again also for a step that a resume had gone on with, and the run goes on after it", async () => {
    const bench = await failingLater();
    // As after a cancel right after its action was announced, of which the device never heard.
    const second = { state: "FAILED", evidence: { seen: 0 }, actingAt: bench.now } as const;
    bench.steps = bench.steps.map((step) => (step.name === "second" ? { ...step, ...second } : step));
    const again = nextAttempt(bench, "resume");
    again.device.acts = 0; // taken back, it shows nothing of it
    again.device.step.before = async () => ({ seen: 0 });
    expect(await again.untilEnd()).toMatchObject({ event: "finished" });
    expect(again.logged.join("")).toContain("first was taken back meanwhile, and is done again first");
    expect(again.steps).toMatchObject([
      { name: "first", state: "SUCCEEDED", takenBack: false },
      { name: "second", state: "SUCCEEDED" },
    ]);
  });

  test("and is being set again when the run is canceled, is not under way any more", async () => {
    const bench = await failingLater();
    const second = { state: "FAILED", evidence: { seen: 0 }, actingAt: bench.now } as const;
    bench.steps = bench.steps.map((step) => (step.name === "second" ? { ...step, ...second } : step));
    const again = nextAttempt(bench, "resume");
    again.device.acts = 0;
    while (again.steps[0]?.state === "SUCCEEDED") {
      const looked = await again.look();
      if (looked.type === "waiting") again.now = new Date(again.now.getTime() + looked.after);
    }
    again.cancelRequestedAt = again.now;
    expect(await again.look()).toMatchObject({ event: "canceled" });
    expect(again.steps.map(({ state }) => state)).toEqual(["FAILED", "FAILED"]);
  });

  test.each(["retry", "rerun", "restart_clean"] as const)(
    "and could not be taken back at the end, is so first by a %s, and then set by it",
    async (action) => {
      const bench = await failingLater(({ device }) => {
        device.failUndoing = new StepFailure("retry", "the BMC is dead");
      });
      expect(bench.residue).toEqual([expect.stringMatching(/^first: .*the BMC is dead/)]);
      expect(bench.logged.at(-1)).toBe(`stays behind: ${bench.residue[0]}\n`);
      nextAttempt(bench, action);
      bench.device.step.before = async () => ({ seen: 0 });
      expect(await bench.look()).toMatchObject({
        reason: expect.stringMatching(/^what step first .*is not taken back/),
      });
      bench.device.failUndoing = undefined;
      expect(await bench.look()).toMatchObject({ reason: "first: taken back", facts: { takeBackFirst: null } });
      expect(bench.device).toMatchObject({ acts: 1, undone: 1 }); // all before it
      bench.device.acts = 0; // taken back, it shows nothing of it
      expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
      // By its own doing, and not found so: whoever fails after it takes it back again.
      expect(bench.steps).toMatchObject([{ name: "first", takenBack: false, carriedOver: false }, { name: "second" }]);
      expect(bench.steps[0]?.actingAt).not.toBeNull();
    },
  );

  test("stays taken back where people have restarted the machine meanwhile", async () => {
    const bench = new Bench();
    bench.planned = ["arm", "boot", "last"];
    bench.action = "resume";
    const visit = {
      ...revive({ retryCount: 0, toTakeBack: null }),
      evidence: { seen: 0 },
      state: "SUCCEEDED",
    } as const;
    bench.steps = [
      { ...visit, name: "arm", kind: "arm", carriedOver: true, takenBack: true, actingAt: bench.now },
      { ...visit, name: "boot", kind: "boot", state: "WAITING", resumed: true },
    ];
    const { step } = bench.device;
    bench.kinds = [
      Object.assign({}, step, {
        kind: "arm",
        forNextBoot: true,
        probe: () => Promise.reject(new Error("asked again")),
      }),
      Object.assign({}, step, { kind: "boot", reboots: true, probe: async () => "done" }),
      step,
    ];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.steps).toMatchObject([
      { name: "arm", takenBack: true },
      { name: "boot", state: "SUCCEEDED" },
      { name: "last", state: "SUCCEEDED" },
    ]);
    expect(bench.device.acts).toBe(1);
  });

  test("is left alone where it was found so: then somebody else has set it", async () => {
    const bench = await failingLater(({ device }) => {
      device.answers = ["done"];
    });
    expect(bench.device.undone).toBe(0);
    expect(bench.steps).toMatchObject([{ state: "SUCCEEDED", takenBack: false }, { state: "FAILED" }]);
  });
});

/** Arms the next boot, does something else, boots: a plan whose first step is taken back, and set again, under the second. */
class BootBench extends Bench {
  isArmed = false;
  isPrepared = false;
  boots = 0;
  /** Booted from where it was not to. */
  hasGoneAstray = false;
  failing: "arm" | "prepare" | "boot" | null = null;
  /** The command for the next boot is obeyed, and then nobody answers any more. */
  goesAway = false;
  isAway = false;
  attempts = 1;

  constructor() {
    super();
    this.planned = ["arm", "prepare", "boot"];
    this.maxRetries = 0;
    const answer = (isDone: boolean): ProbeAnswer => (isDone ? "done" : "not_done");
    this.kinds = [
      defineStep({
        ...this.#common("arm"),
        forNextBoot: true,
        act: async () => {
          this.#check("arm");
          this.isArmed = true;
          this.isAway = this.goesAway;
          this.#check("arm");
        },
        probe: async () => answer(this.#reached(this.isArmed)),
        undo: async () => {
          this.isArmed = this.#reached(false);
        },
        residue: () => "may boot from elsewhere",
      }),
      defineStep({
        ...this.#common("prepare"),
        act: async () => {
          this.#check("prepare");
          this.isPrepared = true;
        },
        probe: async () => answer(this.isPrepared),
      }),
      defineStep({
        ...this.#common("boot"),
        reboots: true,
        act: async () => {
          this.#check("boot");
          this.hasGoneAstray ||= !this.isArmed;
          this.boots += 1;
          this.isArmed = false;
        },
        probe: async ({ evidence }) => answer(this.#reached(this.boots > evidence.boots)),
      }),
    ];
  }

  #common<K extends string>(kind: K) {
    return {
      kind,
      needs: [],
      parse: (payload: JsonObject) => payload,
      before: async () => ({ boots: this.boots }),
    } as const;
  }

  #reached<T>(value: T): T {
    if (this.isAway) throw new DeviceFailure("retry", "unreachable", "the BMC is away");
    return value;
  }

  #check(kind: string): void {
    this.#reached(null);
    if (this.failing === kind) throw new StepFailure("fail", `${kind} is refused`);
  }

  follow(action: NextAttempt): this {
    nextAttempt(this, action);
    this.attempts += 1;
    return Object.assign(this, { id: `run-${this.attempts}`, failing: null, goesAway: false, isAway: false });
  }

  get statuses(): string[] {
    return this.steps.map(({ name, state }) => `${name} ${state}`);
  }
}

describe("a step that was to be done again under others that are proven, and was not", () => {
  /** The boot failed, so the arming was taken back; the retry after it could not do that again. */
  async function notArmedAgain(): Promise<BootBench> {
    const bench = new BootBench();
    bench.failing = "boot";
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
    bench.follow("retry").failing = "arm";
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed", message: "arm: arm is refused" });
    expect(bench.statuses).toEqual(["arm FAILED", "prepare SUCCEEDED"]);
    return bench;
  }

  test.each(["retry", "resume"] as const)(
    "is done in its place by a %s, and the others are not done again",
    async (action) => {
      const bench = (await notArmedAgain()).follow(action);
      expect(await bench.untilEnd(60)).toMatchObject({ event: "finished" });
      expect(bench.steps).toMatchObject([
        { name: "arm", state: "SUCCEEDED", carriedOver: false },
        { name: "prepare", state: "SUCCEEDED", carriedOver: true },
        { name: "boot", state: "SUCCEEDED" },
      ]);
      expect(bench).toMatchObject({ boots: 1, hasGoneAstray: false });
    },
  );

  test("is looked for in its place by an adoption", async () => {
    const bench = (await notArmedAgain()).follow("adopt");
    bench.isArmed = true; // by people
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed", message: /^boot: cannot be taken as done/ });
    expect(bench.statuses).toEqual(["arm SUCCEEDED", "prepare SUCCEEDED", "boot FAILED"]);
  });

  test("is done in its place when a cancel came over it", async () => {
    const bench = new BootBench();
    bench.failing = "boot";
    await bench.untilEnd();
    bench.follow("retry");
    while (bench.statuses[0] !== "arm RUNNING") await bench.look();
    bench.cancelRequestedAt = bench.now;
    expect(await bench.look()).toMatchObject({ event: "canceled" });
    expect(await bench.follow("resume").untilEnd(60)).toMatchObject({ event: "finished" });
    expect(bench).toMatchObject({ boots: 1, hasGoneAstray: false });
  });
});

test("an adoption that fails keeps, and leaves listed, what is still set for the next boot", async () => {
  const bench = new BootBench();
  bench.goesAway = true;
  expect(await bench.untilEnd(60)).toMatchObject({ event: "step_failed" });
  const listed = [expect.stringMatching(/^arm: may boot from elsewhere \(undoing it failed: the BMC is away\)$/)];
  expect(bench).toMatchObject({ isArmed: true, machineResidue: listed });
  bench.isPrepared = true;
  expect(await bench.follow("adopt").untilEnd()).toMatchObject({ event: "step_failed" });
  expect(bench.statuses).toEqual(["arm SUCCEEDED", "prepare SUCCEEDED", "boot FAILED"]);
  expect(bench).toMatchObject({ isArmed: true, machineResidue: listed, takeBackFirst: { step: "arm" } });
  // Which takes it back first, as it does with all that was left, and so has to set it again.
  expect(await bench.follow("retry").untilEnd()).toMatchObject({ event: "finished" });
  expect(bench).toMatchObject({ boots: 1, hasGoneAstray: false, machineResidue: [] });
});

test("whatever attempts follow each other, each goes on in the plan's order, comes to an end, and tells what is still armed", async () => {
  // What goes on with the proven steps, and what fails late, is where attempts depend on each other.
  const carryingOn = Object.keys(ACTION_RULES).filter((one) => ACTION_RULES[one as NextAttempt].carriesProven);
  const rarely = fc.constantFrom(false, false, false, true);
  const attempt = fc.record({
    action: fc.constantFrom(...([...Object.keys(ACTION_RULES), ...carryingOn] as NextAttempt[])),
    failing: fc.constantFrom("arm", "arm", "prepare", "boot", "boot", null),
    goesAway: rarely,
    isAway: rarely,
    cancelAfter: fc.option(fc.nat(12), { freq: 2 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(attempt, { minLength: 2, maxLength: 6 }), async (attempts) => {
      const bench = new BootBench();
      let phase: "FAILED" | "CANCELED" | "SUCCEEDED" | null = null;
      for (const { action, cancelAfter, ...faults } of attempts) {
        if (phase !== null && !mayFollowPhase(action, phase)) continue;
        if (phase !== null) bench.follow(action);
        Object.assign(bench, faults);
        let looks = 0;
        for (phase = null; phase === null; looks += 1) {
          expect(looks).toBeLessThan(200);
          if (looks === cancelAfter) bench.cancelRequestedAt = bench.now;
          const outcome = await bench.look();
          expect(outcome).not.toMatchObject({ facts: { error: { code: "PANIC" } } });
          expect(bench.steps.map(({ name }) => name)).toEqual(bench.planned.slice(0, bench.steps.length));
          if (outcome.type === "waiting") bench.now = new Date(bench.now.getTime() + outcome.after);
          if (outcome.type !== "happened" || outcome.event === "acting") continue;
          phase =
            ({ finished: "SUCCEEDED", step_failed: "FAILED", canceled: "CANCELED" } as const)[outcome.event] ?? null;
        }
        expect(bench.hasGoneAstray).toBe(false);
        // Who could not ask, or was only to look, lists what may be.
        if (bench.isArmed || !(bench.isAway || bench.action === "adopt"))
          expect(bench.machineResidue.some((line) => line.startsWith("arm: "))).toBe(bench.isArmed);
        if (phase === "SUCCEEDED") bench.isPrepared = false;
      }
    }),
    { numRuns: 300 },
  );
});

import { describe, expect, test } from "vitest";
import { DeviceFailure } from "../capabilities/device-failure.ts";
import type { Provider } from "../capabilities/provider.ts";
import { milliseconds } from "../kernel/duration.ts";
import { AppError, StepFailure } from "../kernel/errors.ts";
import type { Outcome } from "../kernel/outcome.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import { BegunActions } from "./begun-actions.ts";
import { type RunContext, runHandlers } from "./executor.ts";
import type { RunThing } from "./lifecycle.ts";
import type { StepStatus } from "./run.ts";
import { type AnyStep, collectSteps, defineStep, type ProbeAnswer } from "./step.ts";
import type { StepTargets } from "./targets.ts";

/** A device of which a test says what happens to it, and which counts what is done to it. */
class Device {
  acts = 0;
  undone = 0;
  answers: ProbeAnswer[] = [];
  failActing: Error | undefined;
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
    undo: async () => {
      this.undone += 1;
    },
  });
}

class Bench {
  now = new Date("2026-01-01T00:00:00Z");
  instance = "one";
  readonly device = new Device();
  readonly begun = new BegunActions();
  readonly stop = new AbortController();
  scripts: Record<string, string> = {};
  steps: StepStatus[] = [];
  cancelRequestedAt: Date | null = null;
  logged: string[] = [];
  maxRetries = 1;
  planned = ["first"];

  run(): RunThing {
    return {
      id: "run-1",
      version: 1,
      basis: 1,
      state: { name: "RUNNING" },
      stateSince: this.now,
      stateVersion: 1,
      outcome: null,
      machine: { id: "m-1" } as Machine,
      plan: {
        planId: "plan/test",
        displayName: "",
        steps: this.planned.map((name) => ({
          name,
          kind: "poke",
          timeoutSeconds: 60,
          maxRetries: this.maxRetries,
          payload: {},
        })),
      },
      params: {},
      cancelRequestedAt: this.cancelRequestedAt,
      facts: {
        scripts: this.scripts,
        steps: this.steps,
        startedAt: this.now,
        finishedAt: null,
        error: null,
        residue: [],
      },
    };
  }

  get context(): RunContext {
    return {
      call: { signal: this.stop.signal, subject: "run run-1", mayTouchDevice: (wanted) => wanted },
      clock: { now: () => this.now, monotonic: () => this.now.getTime() },
      steps: collectSteps([this.device.step]) as ReadonlyMap<string, AnyStep>,
      begun: this.begun,
      provider: { name: "test", can: {} } satisfies Provider,
      // all that the device of these tests asks for
      targets: { script: async (ref) => ({ ref, digest: "sha256:new", text: "" }) } as StepTargets,
      instance: this.instance,
    };
  }

  /** One look, committed. */
  async look(): Promise<Outcome> {
    const outcome = await runHandlers.RUNNING(this.run(), this.context);
    this.commit(outcome);
    return outcome;
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
    const { steps } = outcome.facts ?? {};
    if (steps) this.steps = (steps as unknown as Record<string, never>[]).map(revive);
    for (const effect of outcome.effects ?? [])
      if (effect.type === "log") this.logged.push(...effect.lines.map(({ text }) => text));
  }
}

const DATES = ["startedAt", "finishedAt", "nextAttemptAt", "attemptStartedAt", "actingAt", "actedAt"];
const revive = (step: Record<string, unknown>): StepStatus =>
  Object.fromEntries(
    Object.entries(step).map(([name, value]) => [
      name,
      DATES.includes(name) && value !== null ? new Date(String(value)) : value,
    ]),
  ) as unknown as StepStatus;

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
      effects: [{ type: "move", cause: "run_succeeded", facts: { lastRunId: "run-1" } }],
    });
    expect(bench.steps.map(({ name, state }) => [name, state])).toEqual([
      ["first", "SUCCEEDED"],
      ["second", "SUCCEEDED"],
    ]);
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
    expect(bench.steps).toMatchObject([{ evidence: { seen: 0 }, actingBy: null }]);
    expect(bench.device.acts).toBe(0);
    await bench.look();
    expect(bench.steps).toMatchObject([{ actingBy: "one", actedAt: null }]);
    expect(bench.device.acts).toBe(0);
    await bench.look();
    expect(bench.device.acts).toBe(1);
    expect(bench.steps).toMatchObject([{ actedAt: expect.any(Date) }]);
  });

  test("is not repeated while the device takes its time", async () => {
    const bench = new Bench();
    bench.device.answers = ["not_done", "not_done", "not_done", "not_done", "unknown", "in_progress"];
    await bench.untilEnd();
    expect(bench.device.acts).toBe(1);
  });

  test("is done once although the process died between acting and saying so, when the device shows it", async () => {
    const bench = new Bench();
    await bench.look();
    await bench.look();
    await bench.lookAndDie();
    expect(bench.device.acts).toBe(1);
    await bench.untilEnd();
    expect(bench.device.acts).toBe(1);
  });

  test("is not believed undone right after a death in the middle of it", async () => {
    const bench = new Bench();
    await bench.look();
    await bench.look();
    await bench.lookAndDie();
    bench.device.answers = ["not_done"];
    const outcome = await bench.look();
    expect(outcome.type).toBe("waiting");
    expect(bench.device.acts).toBe(1);
  });

  test("is believed undone only when the device has shown nothing for half a minute", async () => {
    const bench = new Bench();
    await bench.look();
    await bench.look();
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
    await bench.look();
    await bench.look();
    bench.instance = "two"; // announced, and then nothing
    await bench.untilEnd();
    expect(bench.device.acts).toBe(1);
  });
});

describe("an action whose outcome was not written", () => {
  test("is not repeated by the same process while the device has not shown it", async () => {
    const bench = new Bench();
    await bench.look();
    await bench.look();
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
    await bench.look();
    await bench.look();
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
    await bench.look();
    await bench.look();
    bench.device.failActing = lost;
    bench.device.obeysAllTheSame = true;
    await bench.look();
    expect(bench.steps).toMatchObject([{ retryCount: 1, evidence: { seen: 0 }, actedAt: null }]);
    bench.device.failActing = undefined;
    await bench.untilEnd();
    expect(bench.device.acts).toBe(1);
    expect(bench.steps).toMatchObject([{ state: "SUCCEEDED", retryCount: 1 }]);
  });

  test("that was refused begins anew, with evidence of its own", async () => {
    const bench = new Bench();
    await bench.look();
    await bench.look();
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
    await bench.look();
    await bench.look();
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

describe("a look", () => {
  test("that saw nothing new writes nothing", async () => {
    const bench = new Bench();
    bench.device.answers = ["in_progress", "in_progress"];
    await bench.look();
    await bench.look();
    expect(await bench.look()).toMatchObject({ type: "waiting", effects: [] });
    bench.device.answers = ["in_progress"];
    expect((await bench.look()).facts).toBeUndefined();
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
  test("takes back what can be taken back, and ends", async () => {
    const bench = new Bench();
    await bench.look();
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
    await bench.look();
    bench.cancelRequestedAt = bench.now;
    Object.assign(bench.device.step, { undo: () => Promise.reject(new StepFailure("retry", "the BMC is dead")) });
    const outcome = await bench.look();
    expect(outcome).toMatchObject({ event: "canceled" });
    expect(outcome.facts?.residue).toEqual([expect.stringContaining("the BMC is dead")]);
  });
});

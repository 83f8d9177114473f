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
import type { RunAction, StepStatus } from "./run.ts";
import { inheritFrom, type LeftOver, type NextAttempt } from "./run-action.ts";
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
  id = "run-1";
  action: RunAction = "start";
  residue: string[] = [];
  takeBackFirst: LeftOver | null = null;
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
        facts: { residue: [] as string[], cordoned: this.cordoned },
      } as unknown as Machine,
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
      action: this.action,
      cancelRequestedAt: this.cancelRequestedAt,
      facts: {
        scripts: this.scripts,
        steps: this.steps,
        startedAt: this.now,
        finishedAt: null,
        error: null,
        residue: this.residue,
        takeBackFirst: this.takeBackFirst,
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
    const { steps, residue, takeBackFirst } = outcome.facts ?? {};
    if (steps) this.steps = (steps as unknown as Record<string, never>[]).map(revive);
    if (residue) this.residue = residue as string[];
    if (takeBackFirst === null) this.takeBackFirst = null;
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
        { type: "observe", kind: "machine", id: "m-1", facts: { bootId: "new" }, observed: [PROVISIONED] },
      ]);
    });

    test("tells of it with its end, in one change of the machine", async () => {
      const bench = await readyToProve({ state: "done", facts: { bootId: "new" }, conditions: [PROVISIONED] });
      bench.planned = ["first"];
      const { effects = [] } = await bench.look();
      expect(effects.filter(({ kind }) => kind === "machine")).toMatchObject([
        { type: "move", cause: "run_succeeded", facts: { bootId: "new", lastRunId: "run-1" } },
      ]);
      expect(effects.flatMap((effect) => (effect.type === "move" ? effect.observed : []))).toContainEqual(PROVISIONED);
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
    expect(bench.steps).toMatchObject([{ retryCount: 1, evidence: { seen: 0 }, actedAt: null }]);
    bench.device.failActing = undefined;
    await bench.untilEnd();
    expect(bench.device.acts).toBe(1);
    expect(bench.steps).toMatchObject([{ state: "SUCCEEDED", retryCount: 1 }]);
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
  });
});

/** A bench whose run has failed or was canceled, as the next attempt at its job. */
function nextAttempt(bench: Bench, action: NextAttempt): Bench {
  const { steps, takeBackFirst } = inheritFrom(bench.steps, action);
  Object.assign(bench, { id: "run-2", action, steps, takeBackFirst, residue: [], cancelRequestedAt: null });
  bench.device.failActing = undefined;
  bench.logged = [];
  return bench;
}

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
    expect(bench.device.undone).toBe(0);
    expect(bench.steps).toMatchObject([{ retryCount: 1, toTakeBack: { seen: 0 } }]);
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
    expect(bench.steps).toMatchObject([{ retryCount: 1, resumed: true, evidence: { seen: 0 } }]);
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
    Object.assign(bench.device.step, { undo: () => Promise.reject(new StepFailure("retry", "the BMC is dead")) });
    expect(await bench.untilEnd()).toMatchObject({
      event: "finished",
      facts: { residue: [expect.stringContaining("the BMC is dead")] },
    });
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

describe("an adoption", () => {
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

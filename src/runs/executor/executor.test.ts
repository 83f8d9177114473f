import { describe, expect, test } from "vitest";
import { final, retryable } from "../../../test/support/failures.ts";
import { Bench, nextAttempt, PROVISIONED } from "../../../test/support/runs/executor-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { Capabilities } from "../../capabilities/provider.ts";
import { AppError } from "../../kernel/errors.ts";
import type { ProbeAnswer } from "../model/step.ts";
import type { StepTargets } from "../model/targets.ts";
import { runHandlers } from "./executor.ts";
import { BegunActions } from "./step/begun-actions.ts";

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

  test("tells of each attempt at a step that fails, and by which cause", async () => {
    const bench = new Bench();
    bench.device.failActing = new DeviceFailure("busy", "bmc", "come back later");
    await bench.untilEnd();
    const failed = { run: "run-1", step: "first", stepKind: "poke", cause: "busy", reason: "come back later" };
    expect(bench.failedSteps).toEqual([
      { ...failed, attempt: 1 },
      { ...failed, attempt: 2 },
    ]);
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

  test("that succeeds leaves it to passes to say that the host key is the right one again", async () => {
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
      expect(await bench.pass()).toMatchObject({ event: "acting", message: "second: acting" });
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
      const { effects = [] } = await bench.pass();
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

    test("tells of it with its end, in the same commit", async () => {
      const bench = await readyToProve({ state: "done", facts: { bootId: "new" }, conditions: [PROVISIONED] });
      bench.planned = ["first"];
      const { effects = [] } = await bench.pass();
      expect(effects.filter(({ kind }) => kind === "machine")).toMatchObject([
        { type: "observe", facts: { bootId: "new" }, observed: [{ ...PROVISIONED, at: expect.any(String) }] },
        { type: "move", cause: "run_succeeded", facts: { lastRunId: "run-1" } },
      ]);
    });

    test("writes it first when the pass has lasted", async () => {
      const bench = await readyToProve("done");
      const { act } = bench.device.step;
      bench.device.step.act = async (context) => {
        bench.now = new Date(bench.now.getTime() + 5_000);
        return act(context);
      };
      expect(await bench.pass()).toMatchObject({ type: "waiting", reason: "first: done", after: 0 });
      expect(bench.steps.map(({ name, state }) => [name, state])).toEqual([["first", "SUCCEEDED"]]);
    });

    test("keeps it although the next step fails", async () => {
      const bench = await readyToProve("done");
      bench.maxRetries = 0;
      const { before } = bench.device.step;
      bench.device.step.before = async () => {
        throw final("no such image");
      };
      await bench.pass();
      bench.device.step.before = before;
      expect(bench.steps.map(({ name, state }) => [name, state])).toEqual([
        ["first", "SUCCEEDED"],
        ["second", "FAILED"],
      ]);
    });

    test("asks again where the pass came to nothing, and does not act again", async () => {
      const bench = await readyToProve("done");
      await bench.lookInVain();
      await bench.pass();
      expect(bench.steps[0]).toMatchObject({ name: "first", state: "SUCCEEDED" });
      expect(bench.device.acts).toBe(1);
    });
  });

  test("stops at the first step that fails after its retries", async () => {
    const bench = new Bench();
    bench.planned = ["first", "second"];
    bench.device.failActing = retryable("no answer");
    const outcome = await bench.untilEnd();
    expect(outcome).toMatchObject({
      event: "step_failed",
      message: "first: no answer",
      effects: [{ cause: "run_failed" }],
    });
    expect(bench.steps).toMatchObject([{ name: "first", state: "FAILED", retryCount: 2, message: "no answer" }]);
  });

  test("names the cause of its failure, with its facts: on the step, in its error and to whoever hears of its end", async () => {
    const bench = new Bench();
    bench.maxRetries = 0;
    bench.device.failActing = new DeviceFailure("refused_by_device", "bmc", "no", { status: 400 });
    const cause = { code: "refused_by_device", facts: { at: "bmc", status: 400 } };
    expect(await bench.untilEnd()).toMatchObject({
      event: "step_failed",
      cause,
      facts: { error: { details: { step: "first", cause: "refused_by_device", at: "bmc", status: "400" } } },
      effects: [{ cause: "run_failed", observed: [{ type: "NeedsIntervention", cause }] }],
    });
    expect(bench.steps).toMatchObject([{ state: "FAILED", cause }]);
  });

  test("is not called failed by what shows only once its time is over, and then is", async () => {
    const bench = new Bench();
    bench.maxRetries = 0;
    const cause = { code: "no_effect", facts: { at: "bmc" } } as const;
    bench.device.answers = Array.from({ length: 50 }, () => ({ state: "in_progress" as const, cause }));
    await bench.pass();
    expect(bench.steps).toMatchObject([{ state: "RUNNING", cause: null }]);
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed", cause });
  });

  test("does not try again what failed for good", async () => {
    const bench = new Bench();
    bench.maxRetries = 5;
    bench.device.failActing = final("refused");
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
    expect(bench.steps).toMatchObject([{ retryCount: 1 }]);
  });

  test("leaves a step of a kind that it does not know to another server, however long that takes", async () => {
    const bench = new Bench();
    bench.plan = {
      planId: "p",
      displayName: "",
      steps: [{ name: "first", kind: "newer", timeoutSeconds: 60, maxRetries: 3, payload: {} }],
    };
    const message = "this server does not know the step kind newer";
    for (let passes = 0; passes < 10; passes += 1) {
      const pass = await bench.pass();
      expect(pass).toMatchObject({
        type: "waiting",
        reason: `first: ${message}`,
        cause: { code: "not_on_this_server" },
      });
      expect(pass.facts).toBeUndefined();
      bench.now = new Date(bench.now.getTime() + 10_000);
    }
    expect(bench.now.getTime() - bench.startedAt.getTime()).toBeGreaterThan(60_000);
    expect(bench.steps).toEqual([]);
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
    await bench.pass();
    expect(bench.steps).toMatchObject([{ evidence: { seen: 0 }, actingBy: "one", actedAt: null }]);
    expect(bench.device.acts).toBe(0);
    await bench.pass();
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
    await bench.pass();
    expect(bench.steps).toMatchObject([{ actingBy: "one", actedAt: null }]);
    expect(bench.device.carriedOn).toBe(0);
    bench.device.answers = ["halfway", "halfway"];
    await bench.lookAndDie();
    await bench.pass();
    expect(bench.device).toMatchObject({ acts: 0, carriedOn: 2 });
    expect(bench.steps).toMatchObject([{ state: "RUNNING", actingBy: "one" }]);
  });

  test("that the device has accepted is on record, although asking it right afterwards went wrong", async () => {
    const bench = new Bench();
    await bench.announce();
    const { probe } = bench.device.step;
    Object.assign(bench.device.step, {
      probe: async () => {
        if (bench.device.acts > 0) throw new DeviceFailure("protocol", "bmc", "half a page", { status: 200 });
        return probe({} as never);
      },
    });
    await bench.pass();
    expect(bench.steps).toMatchObject([{ actedAt: expect.any(Date), retryCount: 0 }]);
    expect(bench.device).toMatchObject({ acts: 1, undone: 0 });
  });

  test("that is carried on is no failed attempt while nobody answers, and goes by the same evidence when its time is over", async () => {
    const bench = new Bench();
    bench.device.failCarryingOn = new DeviceFailure("unreachable", "bmc", "the BMC does not answer");
    await bench.announce();
    bench.device.answers = Array.from({ length: 60 }, () => "halfway" as const);
    for (let looks = 0; looks < 3; looks += 1) await bench.pass();
    expect(bench.steps).toMatchObject([{ retryCount: 0, message: "the BMC does not answer", evidence: { seen: 0 } }]);
    bench.now = new Date(bench.now.getTime() + 61_000);
    await bench.pass();
    expect(bench.steps).toMatchObject([{ retryCount: 1, state: "RUNNING", evidence: { seen: 0 } }]);
    expect(bench.device).toMatchObject({ undone: 0 });
    bench.device.failCarryingOn = undefined;
    bench.now = new Date(bench.now.getTime() + 5_000);
    await bench.pass();
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
    const outcome = await bench.pass();
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
      await bench.pass();
      await bench.pass();
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
    await bench.pass();
    await bench.pass();
    expect(bench.device.acts).toBe(1);
    await bench.untilEnd();
    expect(bench.device.acts).toBe(1);
  });

  test("is announced again, and done, when the device has still not shown it after a while", async () => {
    const bench = new Bench();
    await bench.announce();
    await bench.lookInVain();
    bench.device.acts = 0; // the device never heard of it
    await bench.untilEnd();
    expect(bench.device.acts).toBe(1);
  });
});

describe("an action without an answer", () => {
  const lost = new DeviceFailure("unreachable", "bmc", "the connection was closed");

  test("is asked for by the evidence of before: the device may have heard", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.device.failActing = lost;
    bench.device.obeysAllTheSame = true;
    await bench.pass();
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
    await bench.pass();
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
    await bench.pass();
    bench.begun.note("one run-2 first");
    bench.device.answers = ["not_done"];
    await bench.pass();
    expect(bench.device.acts).toBe(1);
  });

  test("fails its attempt when its time is over, and the next one goes by the same evidence", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.device.failActing = lost;
    await bench.pass();
    Object.assign(bench.device.step, { probe: () => Promise.reject(lost) });
    bench.now = new Date(bench.now.getTime() + 61_000);
    await bench.pass();
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
    await bench.pass();
    bench.device.failActing = undefined;
    const told = bench.now.getTime();
    while (bench.steps[0]?.retryCount === 0) {
      const outcome = await bench.pass();
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
        throw new DeviceFailure("busy", "bmc", "answered with status 500", { status: 500 });
      },
    });
    expect(await bench.untilEnd()).toMatchObject({
      event: "step_failed",
      message: "first: answered with status 500; then not done within 1m",
      cause: { code: "busy", facts: { at: "bmc", status: 500 } },
    });
    expect(told).toBe(1);
  });

  test("that is cut off after all the time that a pass may take may have been heard too", async () => {
    const bench = new Bench();
    await bench.announce();
    const late = retryable("the work did not end within 5m");
    bench.device.failActing = late;
    bench.stop.abort(late);
    await bench.pass();
    expect(bench.steps).toMatchObject([{ retryCount: 0, unanswered: late.message }]);
  });

  test("cannot be one that this process has announced and not begun: the next attempt begins again", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.now = new Date(bench.now.getTime() + 61_000);
    await bench.failAttempt();
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
    async (_, code, status) => {
      const bench = new Bench();
      await bench.announce();
      bench.device.failActing = new DeviceFailure(code, "bmc", "odd", status === undefined ? {} : { status });
      bench.device.obeysAllTheSame = true;
      await bench.pass();
      bench.device.answers = ["not_done", "not_done"]; // it takes its time to show
      expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
      expect(bench.device).toMatchObject({ acts: 1, undone: 0 });
      expect(bench.steps).toMatchObject([{ state: "SUCCEEDED", retryCount: 0 }]);
    },
  );

  const PLAIN_ANSWERS = [
    ["503", "busy", 503],
    ["429", "busy", 429],
    ["404", "not_found_there", 404],
    ["400", "refused_by_device", 400],
  ] as const;
  test.each(PLAIN_ANSWERS)("but with a plain %s has failed", async (_, code, status) => {
    const bench = new Bench();
    await bench.announce();
    bench.device.failActing = new DeviceFailure(code, "bmc", "no", { status, disposition: "retry" });
    await bench.failAttempt();
    expect(bench.steps).toMatchObject([{ retryCount: 1, evidence: null, unanswered: null }]);
  });

  test("that was refused begins again, with evidence of its own", async () => {
    const bench = new Bench();
    await bench.announce();
    bench.device.failActing = new DeviceFailure("busy", "bmc", "come back later");
    await bench.failAttempt();
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
    await expect(bench.pass()).rejects.toBe(error);
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
  expect(await bench.pass()).toMatchObject({
    event: "step_failed",
    message: expect.stringContaining("has the status of second where that of first belongs"),
    facts: { error: { code: "PANIC", retryable: false } },
    effects: [{ cause: "run_failed" }, {}],
  });
  expect(bench.steps).toMatchObject([{ name: "second", state: "FAILED", finishedAt: bench.now }]);
  expect(nextAttempt(bench, "rerun")).toMatchObject({ steps: [], takeBackFirst: { step: "second" } });
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

describe("a pass", () => {
  test("that saw nothing new writes nothing", async () => {
    const bench = new Bench();
    bench.device.answers = ["in_progress", "in_progress"];
    await bench.pass();
    expect(bench.steps).toMatchObject([{ evidence: { seen: 0 }, actingAt: null }]);
    const again = await bench.pass();
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

describe("a process that is being stopped", () => {
  test("announces no action, and writes what it has noted for whoever goes on", async () => {
    const bench = new Bench();
    bench.mayBegin = false;
    expect(await bench.pass()).toMatchObject({ type: "waiting", reason: "first: about to act", after: 0 });
    expect(bench.steps).toMatchObject([{ evidence: { seen: 0 }, actingAt: null }]);
  });

  test("does what it has announced, writes that, and announces nothing after it", async () => {
    const bench = new Bench();
    bench.planned = ["first", "second"];
    await bench.announce();
    bench.mayBegin = false;
    expect(await bench.pass()).toMatchObject({ type: "waiting", reason: "first: done", after: 0 });
    expect(bench.device.acts).toBe(1);
    expect(bench.steps).toMatchObject([{ name: "first", state: "SUCCEEDED" }]);
  });
});

describe("a server without the provider of the run's machine", () => {
  test("says so by name, as a failed attempt that another server may make good", async () => {
    const bench = new Bench();
    Object.assign(bench.device.step, { needs: ["exec"] });
    await bench.pass();
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
    await bench.pass();
    expect(bench.steps[0]?.message).toBe(
      "the provider test of this server cannot do exec, which a step of kind poke needs",
    );
  });

  test("lists by name why it could not undo", async () => {
    const bench = new Bench();
    await bench.announce();
    Object.assign(bench.device.step, { needs: ["exec"] });
    bench.cancelRequestedAt = bench.now;
    const outcome = await bench.pass();
    expect(outcome.facts?.residue).toEqual([expect.stringContaining("this server does not have the provider test")]);
    expect(bench.device.undone).toBe(0);
  });
});

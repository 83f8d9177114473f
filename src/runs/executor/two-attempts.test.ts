import { describe, expect, test } from "vitest";
import { final, retryable } from "../../../test/support/failures.ts";
import { Bench, failedBench, nextAttempt, unsettledBench } from "../../../test/support/runs/executor-bench.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";

describe("a retry", () => {
  test("does the failed step again and leaves proven ones alone", async () => {
    const bench = new Bench();
    bench.planned = ["first", "second"];
    bench.maxRetries = 0;
    bench.device.answers = ["not_done", "not_done", "done", "not_done", "not_done"];
    for (let looks = 0; bench.steps.at(-1)?.name !== "second"; looks += 1) {
      const outcome = await bench.pass();
      if (outcome.type === "waiting") bench.now = new Date(bench.now.getTime() + outcome.after);
      expect(looks).toBeLessThan(10);
    }
    bench.device.failActing = final("refused");
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
    expect(await bench.pass()).toMatchObject({ type: "waiting" });
    expect(bench.device.acts).toBe(0);
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device.acts).toBe(1);
  });

  test("takes an old failure for no failure of its own: the step is done again, with evidence of now", async () => {
    const bench = await failedBench();
    let failures = 0;
    const { probe } = bench.device.step;
    Object.assign(bench.device.step, {
      probe: async () => {
        failures += 1;
        if (failures === 1) throw retryable("the script ended with exit code 3");
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
        if (asked === 1) throw new DeviceFailure("unreachable", "bmc", "no route");
        return probe({} as never);
      },
    });
    nextAttempt(bench, "resume");
    await bench.pass();
    expect(bench.steps).toMatchObject([{ retryCount: 0, resumed: true, evidence: { seen: 0 }, message: "no route" }]);
    bench.device.answers = ["done"];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device.acts).toBe(0);
  });
});

describe("a restart clean", () => {
  test("undoes first, lists what stays, and begins from the first step", async () => {
    const bench = await failedBench(["first", "second"]);
    const undone = bench.device.undone;
    nextAttempt(bench, "restart_clean");
    await bench.pass();
    expect(bench.device.undone).toBe(undone + 1);
    expect(bench.device.acts).toBe(0);
    expect(await bench.untilEnd()).toMatchObject({ event: "finished", facts: { residue: [] } });
    expect(bench.steps.map(({ name, carriedOver }) => [name, carriedOver])).toEqual([
      ["first", false],
      ["second", false],
    ]);
  });

  test("goes on although nothing could be undone, and says so at its end", async () => {
    const bench = await failedBench();
    nextAttempt(bench, "restart_clean");
    Object.assign(bench.device.step, { undo: () => Promise.reject(final("it has no eject")) });
    expect(await bench.untilEnd()).toMatchObject({
      event: "finished",
      facts: { residue: [expect.stringContaining("it has no eject")] },
    });
  });

  test("tries again while the device does not answer, and begins nothing before", async () => {
    const bench = nextAttempt(await failedBench(), "restart_clean");
    const { undo } = bench.device.step;
    Object.assign(bench.device.step, { undo: () => Promise.reject(retryable("the BMC is dead")) });
    expect(await bench.pass()).toMatchObject({
      type: "waiting",
      reason: expect.stringMatching(/^what step first of the previous attempt left is not undone yet: .*is dead/),
    });
    expect(bench.steps).toEqual([]);
    Object.assign(bench.device.step, { undo });
    expect(await bench.untilEnd()).toMatchObject({ event: "finished", facts: { residue: [] } });
  });

  test("fails when it does not answer for as long as the step may take, and passes on what is to be undone", async () => {
    const bench = nextAttempt(await failedBench(), "restart_clean");
    Object.assign(bench.device.step, { undo: () => Promise.reject(retryable("the BMC is dead")) });
    expect(await bench.untilEnd()).toMatchObject({
      event: "step_failed",
      facts: { error: { retryable: true, message: expect.stringContaining("is not undone within 1m") } },
    });
    expect(bench.device.acts).toBe(0);
    expect(bench.takeBackFirst).toEqual({ step: "first", evidence: { seen: 0 } });
    expect(nextAttempt(bench, "retry").takeBackFirst).toEqual({ step: "first", evidence: { seen: 0 } });
  });

  test("that is canceled before it has undone does so in its end", async () => {
    const bench = await failedBench();
    const undone = bench.device.undone;
    nextAttempt(bench, "restart_clean");
    bench.cancelRequestedAt = bench.now;
    expect(await bench.pass()).toMatchObject({ event: "canceled", facts: { takeBackFirst: null } });
    expect(bench.device.undone).toBe(undone + 1);
  });
});

describe("a rerun", () => {
  test("undoes first what was left open, and begins nothing before", async () => {
    const bench = await unsettledBench();
    nextAttempt(bench, "rerun");
    const { undone } = bench.device;
    expect(await bench.pass()).toMatchObject({
      reason: expect.stringMatching(/^what step first of the previous attempt left is not undone yet: /),
    });
    expect(bench.device).toMatchObject({ acts: 0, undone });
    bench.device.failUndoing = undefined;
    expect(await bench.untilEnd()).toMatchObject({ event: "finished", facts: { residue: [] } });
    expect(bench.device).toMatchObject({ acts: 1, undone: undone + 1 });
    expect(bench.logged.join("")).toMatch(/what it had begun was undone[\s\S]*step first begins/);
  });

  test("takes nothing back where the attempt before has", async () => {
    const bench = await failedBench();
    const { undone } = nextAttempt(bench, "rerun").device;
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.device.undone).toBe(undone);
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

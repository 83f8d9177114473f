import { describe, expect, test } from "vitest";
import { final, retryable } from "../../../../test/support/failures.ts";
import { Bench, nextAttempt } from "../../../../test/support/runs/executor-bench.ts";
import { DeviceFailure } from "../../../capabilities/device-failure.ts";
import type { Effect } from "../../../kernel/effects.ts";
import { milliseconds } from "../../../kernel/time/duration.ts";
import { defineStep, type ProbeAnswer } from "../../model/step.ts";

const WAKE: Effect = { type: "wake", kind: "rack", id: "r-1" };

/** A device that makes a job of each command, and tells of its jobs only to whoever names one. */
class JobDevice {
  jobs: string[] = [];
  /** Which receipt each call was given, by what was called. */
  readonly given: { readonly call: string; readonly receipt: unknown }[] = [];
  answers: (ProbeAnswer | Error)[] = [];
  undoing: Error | undefined;
  effects: readonly Effect[] = [WAKE];

  readonly step = defineStep({
    kind: "job",
    needs: [],
    defaults: { timeout: milliseconds(60_000) },
    parse: (payload) => payload,
    before: async () => ({ before: this.jobs.length }),
    act: async () => {
      this.jobs.push(`job-${this.jobs.length + 1}`);
      return { receipt: { job: this.jobs.at(-1) as string }, effects: this.effects };
    },
    probe: async ({ receipt }) => {
      this.given.push({ call: "probe", receipt });
      const answer = this.answers.shift() ?? (this.jobs.length > 0 ? "done" : "not_done");
      if (answer instanceof Error) throw answer;
      return answer;
    },
    carryOn: async ({ receipt }) => {
      this.given.push({ call: "carryOn", receipt });
      this.jobs.push("second half");
      return { receipt: { job: "second half" } };
    },
    undo: async ({ receipt }) => {
      this.given.push({ call: "undo", receipt });
      if (this.undoing) throw this.undoing;
      return { effects: [WAKE] };
    },
  });

  lastGiven(call: string): unknown {
    return this.given.findLast((one) => one.call === call)?.receipt;
  }
}

function benchWith(device: JobDevice, maxRetries = 0): Bench {
  const bench = new Bench();
  bench.kinds = [device.step];
  bench.planned = ["job"];
  bench.maxRetries = maxRetries;
  return bench;
}

describe("the receipt of an action", () => {
  test("is written with the fact that the action was done, and with its effects", async () => {
    const device = new JobDevice();
    const bench = benchWith(device);
    device.answers = ["not_done", "not_done", "in_progress"];
    await bench.announce();
    const acted = await bench.pass();
    expect(acted).toMatchObject({
      facts: { steps: [{ actedAt: expect.any(String), receipt: { job: "job-1" } }] },
      effects: expect.arrayContaining([WAKE]),
    });
    expect(device.lastGiven("probe")).toEqual({ job: "job-1" });
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(device.lastGiven("probe")).toEqual({ job: "job-1" });
    expect(bench.steps).toMatchObject([{ receipt: { job: "job-1" }, receiptToTakeBack: null }]);
  });

  test("and its effects are written with the proof where that comes at once", async () => {
    const device = new JobDevice();
    const bench = benchWith(device);
    device.answers = ["not_done", "not_done", "done"];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished", effects: expect.arrayContaining([WAKE]) });
  });

  test("is unknown where the process died before it was written: the device is asked", async () => {
    const device = new JobDevice();
    const bench = benchWith(device);
    device.answers = ["not_done", "not_done"];
    await bench.announce();
    device.answers = ["not_done", "in_progress"];
    await bench.lookAndDie();
    expect(device.jobs).toEqual(["job-1"]);
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(device.lastGiven("probe")).toBeNull();
    expect(device.jobs).toEqual(["job-1"]);
  });

  test("is not lost over a probe that fails right after the action", async () => {
    const device = new JobDevice();
    const bench = benchWith(device);
    device.answers = ["not_done", "not_done", final("the job has failed")];
    await bench.announce();
    expect(await bench.pass()).toMatchObject({
      facts: { steps: [{ state: "RUNNING", receipt: { job: "job-1" } }] },
      effects: expect.arrayContaining([WAKE]),
    });
    device.answers = [final("the job has failed")];
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
    expect(device.lastGiven("undo")).toEqual({ job: "job-1" });
  });

  test("is replaced by that of what carries it on", async () => {
    const device = new JobDevice();
    const bench = benchWith(device);
    device.answers = ["not_done", "not_done", "in_progress", "halfway"];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(device.lastGiven("carryOn")).toEqual({ job: "job-1" });
    expect(device.lastGiven("probe")).toEqual({ job: "second half" });
  });

  test("is missed where the answer was lost: then the probe knows when the action was announced", async () => {
    const device = new JobDevice();
    const bench = benchWith(device);
    const announced: unknown[] = [];
    const act = async () => {
      throw new DeviceFailure("timed_out", "bmc", "no answer");
    };
    const probe: typeof device.step.probe = async ({ actingAt, receipt }) => {
      announced.push({ actingAt, receipt });
      return announced.length < 4 ? "not_done" : "done";
    };
    const step = { ...device.step, act, probe };
    bench.kinds = [step];
    await bench.announce();
    const actingAt = bench.steps[0]?.actingAt;
    expect(actingAt).toBeInstanceOf(Date);
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(announced.at(-1)).toEqual({ actingAt, receipt: null });
  });

  test("is replaced by what a look knows for good", async () => {
    const device = new JobDevice();
    const bench = benchWith(device);
    device.answers = ["not_done", "not_done", "in_progress", { state: "unknown", receipt: { job: "seen to be done" } }];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(device.lastGiven("probe")).toEqual({ job: "seen to be done" });
  });

  test("goes to the undo of its own attempt, and not to the probe of the next one", async () => {
    const device = new JobDevice();
    device.undoing = new DeviceFailure("unreachable", "bmc", "the BMC is dead");
    const bench = benchWith(device, 1);
    device.answers = ["not_done", "not_done", "in_progress", retryable("the job has failed")];
    await bench.announce();
    await bench.pass();
    await bench.failAttempt();
    expect(bench.steps).toMatchObject([
      { retryCount: 1, evidence: null, receipt: null, receiptToTakeBack: { job: "job-1" } },
    ]);
    device.undoing = undefined;
    device.answers = ["not_done", "not_done"];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(device.given.filter(({ call }) => call === "undo").map(({ receipt }) => receipt)).toEqual([
      { job: "job-1" },
      { job: "job-1" },
    ]);
    expect(device.lastGiven("probe")).toEqual({ job: "job-2" });
    expect(bench.steps).toMatchObject([{ receipt: { job: "job-2" } }]);
  });
});

describe("what is left of a run with its receipt", () => {
  async function failed(undoing: Error | undefined): Promise<{ bench: Bench; device: JobDevice }> {
    const device = new JobDevice();
    device.undoing = undoing;
    const bench = benchWith(device);
    device.answers = ["not_done", "not_done", "in_progress", final("the job has failed")];
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
    return { bench, device };
  }
  const dead = new DeviceFailure("unreachable", "bmc", "the BMC is dead");

  test("is undone by the attempt after, which is given the receipt", async () => {
    const { bench, device } = await failed(dead);
    nextAttempt(bench, "retry");
    expect(bench.takeBackFirst).toEqual({ step: "job", evidence: { before: 0 }, receipt: { job: "job-1" } });
    device.undoing = undefined;
    device.given.length = 0;
    device.answers = ["not_done", "not_done"];
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(device.given[0]).toEqual({ call: "undo", receipt: { job: "job-1" } });
    expect(device.lastGiven("probe")).toEqual({ job: "job-2" });
  });

  test("is asked for by a resume, which goes by the receipt of before", async () => {
    const { bench, device } = await failed(undefined);
    nextAttempt(bench, "resume");
    device.given.length = 0;
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(device.given).toEqual([{ call: "probe", receipt: { job: "job-1" } }]);
  });

  test("has the effects of its undo written with the end", async () => {
    const device = new JobDevice();
    const bench = benchWith(device);
    device.answers = ["not_done", "not_done", "in_progress"];
    await bench.announce();
    await bench.pass();
    bench.cancelRequestedAt = bench.now;
    expect(await bench.pass()).toMatchObject({ event: "canceled", effects: expect.arrayContaining([WAKE]) });
    expect(device.lastGiven("undo")).toEqual({ job: "job-1" });
  });
});

describe("an action that has effects alone", () => {
  const byEffects = (isThere: () => boolean) =>
    defineStep({
      kind: "create",
      needs: [],
      parse: (payload) => payload,
      before: async () => ({ child: "run-9" }),
      act: async ({ evidence }) => ({ receipt: { ...evidence }, effects: [WAKE] }),
      probe: async () => (isThere() ? "done" : "not_done"),
      actsByEffectsOnly: true,
    });

  test("is done with its announcement, in one commit", async () => {
    let isThere = false;
    const bench = new Bench();
    bench.kinds = [byEffects(() => isThere)];
    bench.planned = ["create"];
    expect(await bench.pass()).toMatchObject({
      type: "waiting",
      facts: { steps: [{ actedAt: expect.any(String), toTakeBack: { child: "run-9" }, receipt: { child: "run-9" } }] },
      effects: expect.arrayContaining([WAKE]),
    });
    isThere = true;
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
  });

  test("has not happened where its process died, and is done at once by the next", async () => {
    const bench = new Bench();
    bench.kinds = [byEffects(() => false)];
    bench.planned = ["create"];
    await bench.lookAndDie();
    expect(bench.steps).toEqual([]);
    expect(await bench.pass()).toMatchObject({ effects: expect.arrayContaining([WAKE]) });
  });
});

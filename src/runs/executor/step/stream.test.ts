import { beforeEach, describe, expect, test } from "vitest";
import { Bench } from "../../../../test/support/runs/executor-bench.ts";
import { DeviceFailure } from "../../../capabilities/device-failure.ts";
import {
  type OpenStream,
  type StreamCall,
  type StreamEnd,
  type StreamProgress,
  type Streams,
  streamOf,
} from "../../../capabilities/stream.ts";
import { milliseconds, seconds } from "../../../kernel/time/duration.ts";
import { type Acted, defineStep, type ProbeAnswer } from "../../model/step.ts";
import { describeProgress } from "./stream.ts";

/** An upload of which a test says how far it comes and how it ends. */
class Upload implements Streams {
  underWay: OpenStream | undefined;
  isFull = false;
  opened = 0;
  readonly happened: string[] = [];
  answer: ProbeAnswer = "not_done";
  #frame: StreamCall | undefined;
  #end: StreamEnd | undefined;
  #sending = Promise.withResolvers<Acted | undefined>();

  readonly step = defineStep({
    kind: "upload",
    needs: [],
    streams: { to: "bmc", longestChunk: seconds(15) },
    parse: (payload) => payload,
    before: async () => ({ version: "1" }),
    act: async ({ call, log }) => {
      this.#frame = streamOf(call);
      log("it begins");
      return this.#sending.promise;
    },
    probe: async () => {
      this.happened.push("probed");
      return this.answer;
    },
    undo: async () => {
      this.happened.push("undone");
      return undefined;
    },
  });

  async open<T>(_: unknown, work: (call: StreamCall) => Promise<T>): Promise<OpenStream<T>> {
    this.opened += 1;
    this.#sending = Promise.withResolvers();
    this.#end = undefined;
    const state: { progress: StreamProgress | undefined } = { progress: undefined };
    const frame: StreamCall = {
      subject: "run run-1",
      signal: new AbortController().signal,
      mayTouchDevice: (wanted) => wanted,
      sendChunk: (send) => send(new AbortController().signal),
      report: (progress) => (state.progress = progress),
    };
    void work(frame).then(
      (value) => (this.#end = { value }),
      (error: unknown) => (this.#end = { error }),
    );
    const stream: OpenStream = {
      get progress() {
        return state.progress;
      },
      take: () => this.#end,
      withdraw: () => void this.happened.push("withdrawn"),
      stop: async (reason) => {
        this.happened.push(`stopped: ${reason.message}`);
        this.#end = { error: reason };
      },
    };
    this.underWay = stream;
    return stream as OpenStream<T>;
  }

  report(progress: StreamProgress): void {
    this.#frame?.report(progress);
  }

  async end(with_: { readonly came?: Acted; readonly error?: Error }): Promise<void> {
    if (with_.error) this.#sending.reject(with_.error);
    else this.#sending.resolve(with_.came);
    await new Promise(setImmediate);
  }

  /** The process that was sending is gone. */
  dieIn(bench: Bench): void {
    this.underWay = undefined;
    bench.instance = "two";
    this.happened.length = 0;
  }
}

let bench: Bench;
let upload: Upload;
beforeEach(() => {
  bench = new Bench();
  upload = new Upload();
  bench.kinds = [upload.step];
  bench.planned = ["upload"];
  bench.streams = upload;
});

const pass = (ms: number) => (bench.now = new Date(bench.now.getTime() + ms));
async function begin(): Promise<void> {
  await bench.announce();
  await bench.pass();
  expect(upload.opened).toBe(1);
}

describe("an action that is a stream", () => {
  test("goes on between passes, which write how far it is and what it says", async () => {
    await begin();
    expect(bench.steps).toMatchObject([{ message: "sending", actedAt: null }]);
    upload.report({ bytes: 3_000_000, of: 40_000_000 });
    pass(20_000);
    upload.happened.length = 0;
    const outcome = await bench.pass();
    expect(outcome).toMatchObject({ type: "waiting", reason: "upload: sent 3.0 MB of 40.0 MB (7 %)" });
    expect(bench.steps).toMatchObject([{ message: "sent 3.0 MB of 40.0 MB (7 %)", streamedAt: bench.now }]);
    expect(bench.logged).toContain("it begins\n");
    expect(upload.happened).toEqual([]);
  });

  test("is looked after every second at first, and every ten seconds later", async () => {
    await begin();
    const pauses: number[] = [];
    for (let passes = 0; passes < 12; passes += 1) {
      const outcome = await bench.pass();
      if (outcome.type !== "waiting") throw new Error(`it came to ${outcome.type}`);
      pauses.push(outcome.after);
      pass(outcome.after);
    }
    expect(pauses.slice(0, 4)).toEqual([1_000, 1_000, 1_000, 1_000]);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(10_000);
  });

  test("is done as every other action is, with its receipt", async () => {
    await begin();
    upload.answer = "in_progress";
    await upload.end({ came: { receipt: { task: "t-1" } } });
    await bench.pass();
    expect(bench.steps).toMatchObject([{ actedAt: bench.now, receipt: { task: "t-1" } }]);
    upload.underWay = undefined;
    upload.answer = "done";
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(bench.steps).toMatchObject([{ state: "SUCCEEDED", streamedAt: null }]);
  });

  test("that the device did not take leaves open whether it obeyed", async () => {
    await begin();
    await upload.end({ error: new DeviceFailure("timed_out", "bmc", "a chunk was not taken within 15s") });
    await bench.pass();
    expect(bench.steps).toMatchObject([{ unanswered: "a chunk was not taken within 15s", retryCount: 0 }]);
  });

  test("is stopped before anything is undone", async () => {
    await begin();
    bench.cancelRequestedAt = bench.now;
    upload.happened.length = 0;
    expect(await bench.pass()).toMatchObject({ event: "canceled" });
    expect(upload.happened).toEqual(["stopped: the run is being canceled", "undone"]);
  });

  test("is stopped when the step's time is over, and the next attempt asks first", async () => {
    await begin();
    upload.report({ bytes: 500 });
    pass(60_000);
    upload.happened.length = 0;
    await bench.pass();
    expect(upload.happened).toEqual(["stopped: not done within 1m: sent 500 B"]);
    expect(bench.steps).toMatchObject([
      { retryCount: 1, message: "not done within 1m: sent 500 B", cause: { code: "not_done_in_time" } },
    ]);
    upload.underWay = undefined;
    upload.answer = "done";
    expect(await bench.untilEnd()).toMatchObject({ event: "finished" });
    expect(upload.opened).toBe(1);
  });

  test("is stopped when the pass that looks after it fails", async () => {
    await begin();
    upload.happened.length = 0;
    const { run } = bench;
    bench.run = () => {
      const thing = run.call(bench);
      return { ...thing, target: { ...thing.target, thing: null } };
    };
    await bench.pass();
    expect(upload.happened[0]).toBe("stopped: machine m-1 does not exist any more");
  });

  test("of a process that died is sent again by another one, not before it can have nothing on its way", async () => {
    await begin();
    pass(5_000);
    await bench.pass(); // the last progress on record
    upload.dieIn(bench);
    pass(seconds(30 + 15));
    expect(await bench.pass()).toMatchObject({ type: "waiting" });
    expect(upload.opened).toBe(1);
    pass(1);
    expect(await bench.pass()).toMatchObject({ type: "happened", event: "acting" });
    await bench.pass();
    expect(upload.opened).toBe(2);
    expect(bench.steps).toMatchObject([{ actingBy: "two" }]);
  });

  test("is not announced while the replica has no room for it", async () => {
    upload.isFull = true;
    const outcome = await bench.pass();
    expect(outcome).toMatchObject({ type: "waiting", reason: expect.stringContaining("another stream") });
    expect(bench.steps).toMatchObject([{ actingAt: null }]);
    upload.isFull = false;
    await begin();
  });
});

describe("a stream that must not be cut off", () => {
  beforeEach(() => {
    bench.maxRetries = 0;
    const { undo: _, ...step } = upload.step;
    const flash = { ...step, finishesOnceBegun: true, staysUntilProven: true };
    bench.kinds = [flash];
  });

  test("goes on although the run is being canceled, and leaves its receipt", async () => {
    await begin();
    bench.cancelRequestedAt = bench.now;
    upload.happened.length = 0;
    expect(await bench.pass()).toMatchObject({ type: "waiting", reason: "upload: sending" });
    expect(upload.happened, "it is not stopped").toEqual(["withdrawn"]);
    upload.answer = "in_progress";
    await upload.end({ came: { receipt: { task: "t-1" } } });
    expect(await bench.pass()).toMatchObject({ type: "waiting" });
    expect(bench.steps).toMatchObject([{ receipt: { task: "t-1" } }]);
    upload.underWay = undefined;
    upload.answer = "done";
    await bench.pass();
    expect(await bench.pass()).toMatchObject({ event: "canceled" });
    expect(bench.steps).toMatchObject([{ state: "SUCCEEDED" }]);
    expect(upload.opened).toBe(1);
  });

  test("that was only asking whether the device has time ends with the cancel, and nothing is left", async () => {
    await begin();
    bench.cancelRequestedAt = bench.now;
    await bench.pass();
    await upload.end({ error: new DeviceFailure("busy", "bmc", "not now", { status: 503 }) });
    await bench.pass();
    upload.underWay = undefined;
    expect(await bench.pass()).toMatchObject({ event: "canceled" });
    expect(bench.residue).toEqual([]);
  });

  test("whose answer is lost is not taken for one that never came, before the device has had its time", async () => {
    await begin();
    await upload.end({ error: new DeviceFailure("timed_out", "bmc", "no answer") });
    await bench.pass();
    upload.underWay = undefined;
    bench.cancelRequestedAt = bench.now;
    expect(await bench.pass(), "no task is listed yet").toMatchObject({ type: "waiting" });
    pass(seconds(30 + 15));
    expect(await bench.pass()).toMatchObject({ type: "waiting" });
    pass(1);
    await bench.pass();
    expect(await bench.pass()).toMatchObject({ event: "canceled" });
    expect(bench.residue, "nothing of it happened").toEqual([]);
  });

  test("and that the device refuses lets the canceled run end", async () => {
    await begin();
    bench.cancelRequestedAt = bench.now;
    await upload.end({ error: new DeviceFailure("refused_by_device", "bmc", "wrong image") });
    await bench.pass();
    upload.underWay = undefined;
    expect(await bench.pass()).toMatchObject({ event: "canceled" });
  });

  test.each([false, true])("is unproven when its time is over (canceled: %s)", async (isCanceled) => {
    await begin();
    if (isCanceled) bench.cancelRequestedAt = bench.now;
    upload.answer = "unknown";
    pass(60_000);
    upload.happened.length = 0;
    expect(await bench.pass()).toMatchObject({ type: "waiting" });
    expect(upload.happened).toContain("stopped: not done within 1m: sending");
    expect(bench.steps).toMatchObject([{ state: "RUNNING", unanswered: "not done within 1m: sending" }]);
    upload.underWay = undefined;
    pass(1_000);
    await bench.pass();
    expect(bench.unproven).toMatchObject({ step: "upload" });
    upload.answer = "done";
    await bench.untilEnd();
    expect(bench.steps).toMatchObject([{ state: "SUCCEEDED" }]);
    expect(upload.opened).toBe(1);
  });

  test("and that was cut off at its deadline is not taken for one that never came at once", async () => {
    await begin();
    pass(60_000);
    await bench.pass();
    upload.underWay = undefined;
    pass(1_000);
    expect(await bench.pass()).toMatchObject({ type: "waiting" });
    expect(bench.steps).toMatchObject([{ state: "RUNNING" }]);
    pass(seconds(60));
    expect(await bench.untilEnd()).toMatchObject({ event: "step_failed" });
  });
});

test.for([
  [undefined, "sending"],
  [{ bytes: 999 }, "sent 999 B"],
  [{ bytes: 1_000, of: 1_000 }, "sent 1.0 kB of 1.0 kB (100 %)"],
  [{ bytes: 0, of: 0 }, "sent 0 B of 0 B (100 %)"],
  [{ bytes: 1_234_567_890, of: 2_000_000_000 }, "sent 1.2 GB of 2.0 GB (61 %)"],
] as const)("progress %o is shown as %s", ([progress, text]) => {
  expect(describeProgress(progress)).toBe(text);
});

test("a call that is no stream says how it becomes one", () => {
  const call = { subject: "run run-1", signal: new AbortController().signal, mayTouchDevice: () => milliseconds(1) };
  expect(() => streamOf(call)).toThrow('run run-1: the call is no stream; declare "streams" with the step');
});

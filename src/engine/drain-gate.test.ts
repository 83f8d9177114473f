import { once } from "node:events";
import { expect, test } from "vitest";
import { DrainGate } from "./drain-gate.ts";

/** A loop that says when it began and ended, and as many times as it did. */
function followed() {
  const seen: string[] = [];
  let tell = () => {};
  const say = (word: string) => {
    seen.push(word);
    tell();
  };
  const until = async (count: number) => {
    while (seen.length < count)
      await new Promise<void>((resolve) => {
        tell = resolve;
      });
    return seen;
  };
  const loop = async (signal: AbortSignal) => {
    say("began");
    if (!signal.aborted) await once(signal, "abort");
    say("ended");
  };
  return { loop, until };
}

test("a loop ends when the gate closes, begins again when it opens, and ends for good with the signal", async () => {
  const gate = new DrainGate();
  const { loop, until } = followed();
  const stopping = new AbortController();
  const running = gate.guard(loop)(stopping.signal);
  await until(1);
  gate.set(true);
  gate.set(true); // each beat says it again
  expect(await until(2)).toEqual(["began", "ended"]);
  gate.set(false);
  expect(await until(3)).toEqual(["began", "ended", "began"]);
  stopping.abort();
  await running;
  expect(await until(4)).toEqual(["began", "ended", "began", "ended"]);
});

test("a gate that is closed keeps no process from stopping", async () => {
  const gate = new DrainGate();
  gate.set(true);
  const stopping = new AbortController();
  const running = gate.guard(async () => expect.unreachable())(stopping.signal);
  stopping.abort();
  await running;
});

test("a loop that fails, or ends by itself, is the supervisor's to start again", async () => {
  const { signal } = new AbortController();
  const gate = new DrainGate();
  await expect(gate.guard(async () => Promise.reject(new Error("broken")))(signal)).rejects.toThrow("broken");
  await expect(gate.guard(async () => {})(signal)).rejects.toThrow("it ended by itself");
});

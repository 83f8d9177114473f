import { expect, test } from "vitest";
import { seconds } from "../../kernel/time/duration.ts";
import { shareReads } from "./shared-reads.ts";

function bench() {
  let now = 0;
  const begun: { key: string; answer: (text: string) => void; fail: (error: Error) => void }[] = [];
  const read = shareReads<string>({
    clock: { now: () => new Date(now), monotonic: () => now },
    keepFor: seconds(10),
    read: (key) => new Promise((answer, fail) => begun.push({ key, answer, fail })),
  });
  const ask = (key: string, signal = new AbortController().signal) => read(key, signal);
  return { begun, ask, pass: (ms: number) => (now += ms) };
}

test("callers who ask for the same share one read, and its answer for ten seconds after it", async () => {
  const { begun, ask, pass } = bench();
  const both = Promise.all([ask("a"), ask("a")]);
  pass(60_000);
  const late = ask("a");
  expect(begun.map(({ key }) => key)).toEqual(["a"]);
  begun[0]?.answer("one");
  expect([...(await both), await late]).toEqual(["one", "one", "one"]);
  pass(9_999);
  expect(await ask("a")).toBe("one");
  void ask("b");
  expect(begun.map(({ key }) => key)).toEqual(["a", "b"]);
  pass(1);
  const fresh = ask("a");
  begun[2]?.answer("two");
  expect(await fresh).toBe("two");
});

test("a failure is an answer: a device that lets nobody in is not asked again at once", async () => {
  const { begun, ask, pass } = bench();
  const first = ask("a");
  begun[0]?.fail(new Error("credentials rejected"));
  await expect(first).rejects.toThrow("credentials rejected");
  await expect(ask("a")).rejects.toThrow("credentials rejected");
  expect(begun).toHaveLength(1);
  pass(10_000);
  void ask("a");
  expect(begun).toHaveLength(2);
});

test("a caller who stops waiting ends the read for nobody else", async () => {
  const { begun, ask } = bench();
  const stop = new AbortController();
  const left = ask("a", stop.signal);
  const stays = ask("a");
  stop.abort(new Error("gone"));
  await expect(left).rejects.toThrow("gone");
  await expect(ask("a", stop.signal)).rejects.toThrow("gone");
  begun[0]?.answer("one");
  expect([await stays, begun.length]).toEqual(["one", 1]);
});

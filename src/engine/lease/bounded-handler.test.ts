import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { CallContext } from "../../capabilities/call.ts";
import { minutes, seconds } from "../../kernel/time/duration.ts";
import { runBounded } from "./bounded-handler.ts";
import { LONGEST_CALL } from "./lease.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const callWith = (signal: AbortSignal = new AbortController().signal): CallContext => ({
  signal,
  subject: "widget w",
  mayTouchDevice: (wanted) => wanted,
});
const never = () => new Promise<never>(() => {});
const untilStopped = ({ signal }: CallContext) =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

test("a handler that ends by itself is left alone, and no timer stays behind", async () => {
  expect(await runBounded(callWith(), async () => "done")).toBe("done");
  await expect(runBounded(callWith(), () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(vi.getTimerCount()).toBe(0);
});

test("a handler that takes too long is stopped, and its failure says why", async () => {
  const running = expect(runBounded(callWith(), untilStopped, minutes(2))).rejects.toMatchObject({
    disposition: "retry",
    message: "the work did not end within 2m",
  });
  await vi.advanceTimersByTimeAsync(minutes(2));
  await running;
});

test("a handler that does not listen is left behind after as long as a device call may last, and touches nothing more", async () => {
  let call: CallContext | undefined;
  const running = expect(
    runBounded(
      callWith(),
      (given) => {
        call = given;
        return never();
      },
      minutes(2),
    ),
  ).rejects.toThrow("did not end within 2m");
  await vi.advanceTimersByTimeAsync(minutes(2) + LONGEST_CALL - 1);
  expect(call?.mayTouchDevice(seconds(1))).toBe(seconds(1));
  await vi.advanceTimersByTimeAsync(1);
  await running;
  expect(() => call?.mayTouchDevice(seconds(1))).toThrow("did not end within 2m");
});

test("a stop from outside gives the handler the same time, so that its last call has ended when others go on", async () => {
  const stop = new AbortController();
  let ended = false;
  const running = runBounded(callWith(stop.signal), never)
    .catch((error: unknown) => error)
    .finally(() => {
      ended = true;
    });
  stop.abort(new Error("shutting down"));
  await vi.advanceTimersByTimeAsync(LONGEST_CALL - 1);
  expect(ended).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(await running).toEqual(new Error("shutting down"));
});

test("a handler that starts under a stop is bounded too", async () => {
  const running = expect(runBounded(callWith(AbortSignal.abort(new Error("late"))), never)).rejects.toThrow("late");
  await vi.advanceTimersByTimeAsync(LONGEST_CALL);
  await running;
});

test("a handler can ask whether it may begin anything new, for as long as it is at work", async () => {
  let isStopping = false;
  const call = { ...callWith(), mayBegin: () => !isStopping };
  const seen = await runBounded(call, async ({ mayBegin }) => {
    const before = mayBegin?.();
    isStopping = true;
    return [before, mayBegin?.()];
  });
  expect(seen).toEqual([true, false]);
});

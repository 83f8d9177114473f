import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createBootHolds, type HoldOrder } from "./boot-holds.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

let [notes, looks, isFree] = [0, 0, false];
beforeEach(() => {
  [notes, looks, isFree] = [0, 0, false];
});
const order = (signal = new AbortController().signal, key = "run-1 mark"): HoldOrder => ({
  key,
  note: async () => {
    notes += 1;
  },
  isFree: async () => {
    looks += 1;
    return isFree;
  },
  signal,
});

test("installers that wait for the same run look at it together, and at most eight wait", async () => {
  const holds = createBootHolds();
  const waiting = Array.from({ length: 8 }, () => holds.wait(order()));
  await expect(holds.wait(order())).rejects.toMatchObject({ kind: "exhausted" });
  const other = holds.wait(order(undefined, "run-2 mark"));
  await vi.advanceTimersByTimeAsync(1_000);
  expect([notes, looks]).toEqual([2, 22]);
  isFree = true;
  await vi.advanceTimersByTimeAsync(100);
  await Promise.all([...waiting, other]);
  expect(vi.getTimerCount()).toBe(0);
});

test("one that comes late waits as long as the first, and one that left makes room", async () => {
  const holds = createBootHolds();
  const leave = new AbortController();
  const ended: string[] = [];
  const first = holds.wait(order()).then(() => ended.push("first"));
  const leavers = Array.from({ length: 7 }, () => holds.wait(order(leave.signal)));
  await vi.advanceTimersByTimeAsync(4_000);
  leave.abort();
  await Promise.all(leavers);
  const late = holds.wait(order()).then(() => ended.push("late"));
  await vi.advanceTimersByTimeAsync(1_000);
  await first;
  expect(ended).toEqual(["first"]);
  await vi.advanceTimersByTimeAsync(4_000);
  await late;
  const before = looks;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(looks).toBe(before);
});

test("nobody is answered before it is noted, and a note that fails is told and tried again by the next", async () => {
  const holds = createBootHolds();
  const failing = { ...order(), note: () => Promise.reject(new Error("no database")) };
  await Promise.all([1, 2].map(() => expect(holds.wait(failing)).rejects.toThrow("no database")));
  isFree = true;
  await holds.wait(order());
  expect(notes).toBe(1);
});

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { seconds } from "../../kernel/time/duration.ts";
import { NudgePacer } from "./nudge-pacer.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function aPacer() {
  const startedAt = performance.now();
  const at: number[] = [];
  const clock = { now: () => new Date(), monotonic: () => performance.now() };
  const pacer = new NudgePacer(() => at.push(Math.round(performance.now() - startedAt)), { every: seconds(15), clock });
  const hear = async (times: number, everyMs: number) => {
    for (let heard = 0; heard < times; heard += 1) {
      pacer.heard();
      await vi.advanceTimersByTimeAsync(everyMs);
    }
  };
  return { pacer, at, hear };
}

describe("a device of which something is heard", () => {
  test("is nudged at once, and once more a second later", async () => {
    const { at, hear } = aPacer();
    await hear(1, 10_000);
    expect(at).toEqual([0, 1_000]);
  });

  test("is nudged once a second, however much is heard", async () => {
    const { at, hear } = aPacer();
    await hear(30, 100);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(at).toEqual([0, 1_000, 2_000, 3_000, 4_000]);
  });

  test("that reports without end is nudged no more often than it would be polled", async () => {
    const { at, hear } = aPacer();
    await hear(3_000, 100); // five minutes
    const later = at.filter((ms) => ms > 30_000);
    expect(later.length).toBeLessThanOrEqual(19);
    for (const [index, ms] of later.slice(1).entries()) expect(ms - (later[index] ?? 0)).toBeGreaterThan(14_000);
  });

  test("that has been quiet since is nudged at once again", async () => {
    const { at, hear } = aPacer();
    await hear(600, 100);
    await vi.advanceTimersByTimeAsync(200_000);
    const [before, heardAt] = [at.length, performance.now()];
    await hear(1, 1_500);
    expect(at.length - before).toBe(2);
    expect(performance.now() - heardAt).toBeLessThan(2_000);
  });

  test("is not nudged after the stop", async () => {
    const { at, hear, pacer } = aPacer();
    await hear(1, 0);
    pacer.stop();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(at).toEqual([0]);
  });
});

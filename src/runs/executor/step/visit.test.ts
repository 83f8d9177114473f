import { describe, expect, test } from "vitest";
import type { Step } from "../../model/plan/plan.ts";
import { announced, beginVisit, failedAttempt, pauseLeft, succeeded } from "./visit.ts";

const NOW = new Date("2026-01-01T00:00:00Z");
const step: Step = { name: "boot", kind: "reboot", timeoutSeconds: 60, maxRetries: 5, payload: {} };
const clock = { now: () => NOW, monotonic: () => 0 };
const CAUSE = { code: "unreachable", facts: { at: "bmc" } } as const;
const FAILURE = { message: "no answer", cause: CAUSE, final: false, mayHaveActed: false, needsPerson: false };
const failedTimes = (times: number) => ({ ...beginVisit(step, NOW), retryCount: times });

describe("an attempt that failed", () => {
  // biome-ignore format: a table is read by its columns
  test.each([
    [1, 1_000],
    [2, 2_000],
    [3, 4_000],
    [4, 8_000],
    [5, 10_000],
  ])("is followed by retry %i after %i ms, spread by a fifth, and the timeout counts from then", (retry, usual) => {
    const pauses = Array.from({ length: 50 }, () => {
      const visit = failedAttempt(failedTimes(retry - 1), step, FAILURE, NOW);
      expect(visit).toMatchObject({ state: "RUNNING", retryCount: retry, message: "no answer", cause: FAILURE.cause, finishedAt: null });
      expect(visit.attemptStartedAt).toEqual(visit.nextAttemptAt);
      expect(pauseLeft(visit, clock)).toBe((visit.nextAttemptAt?.getTime() ?? 0) - NOW.getTime());
      return (visit.nextAttemptAt?.getTime() ?? 0) - NOW.getTime();
    });
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(usual * 0.8);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(usual * 1.2);
    expect(new Set(pauses).size).toBeGreaterThan(1);
  });

  test("is due no more once the attempt after it acts, or has found the step done", () => {
    const failed = failedAttempt(failedTimes(0), step, FAILURE, NOW);
    expect(failed.nextAttemptAt).not.toBeNull();
    expect(announced(failed, { instance: "one", clock }).nextAttemptAt).toBeNull();
    expect(succeeded(failed, NOW, "booted")).toMatchObject({ nextAttemptAt: null, cause: null });
  });

  test.each([
    ["was the last one", failedTimes(5), FAILURE],
    ["failed for good", failedTimes(0), { ...FAILURE, final: true }],
  ])("and %s is followed by none", (_, visit, failure) => {
    const failed = failedAttempt(visit, step, failure, NOW);
    expect(failed).toMatchObject({ state: "FAILED", nextAttemptAt: null, finishedAt: NOW });
    expect(pauseLeft(failed, clock)).toBe(0);
  });
});

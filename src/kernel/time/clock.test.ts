import { expect, test } from "vitest";
import { systemClock } from "./clock.ts";

test("the system's clock tells the present", () => {
  const before = Date.now();
  const now = systemClock.now().getTime();
  expect(now).toBeGreaterThanOrEqual(before);
  expect(now).toBeLessThanOrEqual(Date.now());
});

test("the monotonic clock never goes back", () => {
  const readings = Array.from({ length: 1_000 }, () => systemClock.monotonic());
  expect(readings).toEqual(readings.toSorted((a, b) => a - b));
});

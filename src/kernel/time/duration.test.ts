import fc from "fast-check";
import { expect, test } from "vitest";
import { describeDuration, hours, milliseconds, minutes, seconds } from "./duration.ts";

test("the units agree with each other", () => {
  expect(hours(1)).toBe(minutes(60));
  expect(minutes(1)).toBe(seconds(60));
  expect(seconds(1)).toBe(milliseconds(1_000));
});

test.each([
  [milliseconds(-5), "0ms"],
  [milliseconds(0), "0ms"],
  [milliseconds(999), "999ms"],
  [milliseconds(999.6), "999ms"],
  [seconds(1), "1s"],
  [seconds(59.999), "59s"],
  [seconds(250), "4m 10s"],
  [minutes(5), "5m"],
  [hours(26), "1d 2h"],
  [hours(24 * 400), "400d"],
])("%d ms is told as %s", (duration, text) => {
  expect(describeDuration(duration)).toBe(text);
});

test("the text has two units at most and never tells of more time than there was, nor of less than the smaller unit", () => {
  const sizes: Record<string, number> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 10 * 365 * 86_400_000 }), (duration) => {
      const parts = describeDuration(milliseconds(duration)).split(" ");
      expect(parts.length).toBeLessThanOrEqual(2);
      const told = parts.map((part) => {
        const [, count, unit] = /^(\d+)(d|h|m|s|ms)$/.exec(part) ?? [];
        return { amount: Number(count) * (sizes[unit ?? ""] ?? Number.NaN), size: sizes[unit ?? ""] ?? Number.NaN };
      });
      const sum = told.reduce((total, { amount }) => total + amount, 0);
      expect(sum).toBeLessThanOrEqual(duration);
      if (parts.length === 2) expect(duration - sum).toBeLessThan(told[1]?.size ?? 0);
      else expect(duration - sum).toBeLessThan(duration < 1_000 ? 1 : 1_000);
    }),
  );
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { milliseconds } from "./duration.ts";
import { type BackOff, pauseBefore, polling, retrying } from "./retry.ts";

const backOffs = fc
  .tuple(fc.integer({ min: 1, max: 60_000 }), fc.integer({ min: 1, max: 600_000 }))
  .map(([first, more]): BackOff => ({ first: milliseconds(first), most: milliseconds(first + more) }));
const attempts = fc.integer({ min: 1, max: 1_000_000 });
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe("the pause before a try", () => {
  test("doubles from the first to the most", () => {
    const pauses = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((attempt) => pauseBefore(attempt, retrying, () => 0.5));
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  });

  test("of a poll grows from 0.2 s to 10 s", () => {
    expect(pauseBefore(1, polling, () => 0.5)).toBe(200);
    expect(pauseBefore(50, polling, () => 0.5)).toBe(10_000);
  });

  test("stays within a fifth of first and most, whatever the attempt and the luck", () => {
    fc.assert(
      fc.property(backOffs, attempts, chance, (backOff, attempt, luck) => {
        const pause = pauseBefore(attempt, backOff, () => luck);
        expect(Number.isInteger(pause)).toBe(true);
        expect(pause).toBeGreaterThanOrEqual(Math.round(backOff.first * 0.8));
        expect(pause).toBeLessThanOrEqual(Math.round(backOff.most * 1.2));
      }),
    );
  });

  test("never shrinks from one attempt to the next at the same luck", () => {
    fc.assert(
      fc.property(backOffs, attempts, chance, (backOff, attempt, luck) => {
        const random = () => luck;
        expect(pauseBefore(attempt + 1, backOff, random)).toBeGreaterThanOrEqual(pauseBefore(attempt, backOff, random));
      }),
    );
  });

  test("is spread, so that a crowd does not come back as one", () => {
    expect(pauseBefore(3, retrying, () => 0)).toBe(3_200);
    expect(pauseBefore(3, retrying, () => 0.999_999)).toBe(4_800);
  });

  test("counts a number below one as the first try", () => {
    expect(pauseBefore(0, retrying, () => 0.5)).toBe(1_000);
    expect(pauseBefore(-3, retrying, () => 0.5)).toBe(1_000);
  });
});

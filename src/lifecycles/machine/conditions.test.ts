import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CONDITION_TYPES, type Conditions, holds, type ObservedCondition, observe } from "./conditions.ts";

const EARLIER = new Date("2026-01-01T00:00:00Z");
const NOW = new Date("2026-01-02T00:00:00Z");
const reachable = (status: boolean, reason = "BannerRead"): ObservedCondition => ({
  type: "Reachable",
  status,
  reason,
  message: "",
});
const before: Conditions = [{ ...reachable(true), lastTransition: EARLIER }];

describe("an observation", () => {
  test("that is new is noted with its time", () => {
    expect(observe([], [reachable(false)], NOW)).toEqual([{ ...reachable(false), lastTransition: NOW }]);
  });

  test("that flips the status sets the time of transition", () => {
    expect(observe(before, [reachable(false, "Timeout")], NOW)).toEqual([
      { ...reachable(false, "Timeout"), lastTransition: NOW },
    ]);
  });

  test("with another reason for the same keeps the time of transition", () => {
    expect(observe(before, [reachable(true, "PingOK")], NOW)).toEqual([
      { ...reachable(true, "PingOK"), lastTransition: EARLIER },
    ]);
  });

  test("that says what is known already leaves the very same array, so that nothing is written", () => {
    expect(observe(before, [reachable(true)], NOW)).toBe(before);
    expect(observe(before, [], NOW)).toBe(before);
  });

  test("that says when it was made flips the condition at that time", () => {
    const at = new Date(NOW.getTime() - 5_000);
    const [seen] = observe(before, [{ ...reachable(false), at }], NOW);
    expect(seen).toEqual({ ...reachable(false), lastTransition: at });
  });

  test("of one condition leaves the others, each once, in the order of the specification", () => {
    const observed = fc.record({
      type: fc.constantFrom(...CONDITION_TYPES),
      status: fc.boolean(),
      reason: fc.constantFrom("A", "B"),
      message: fc.constant(""),
    });
    fc.assert(
      fc.property(fc.array(observed, { maxLength: 12 }), (all) => {
        const after = all.reduce<Conditions>((conditions, each) => observe(conditions, [each], NOW), []);
        const seen = new Set(all.map(({ type }) => type));
        expect(after.map(({ type }) => type)).toEqual(CONDITION_TYPES.filter((type) => seen.has(type)));
        for (const type of seen)
          expect(after.find((each) => each.type === type)).toMatchObject(
            all.findLast((each) => each.type === type) ?? {},
          );
      }),
    );
  });
});

test("a condition holds when it was seen to be true, and not when it was never checked", () => {
  expect(holds(before, "Reachable")).toBe(true);
  expect(holds([reachable(false)], "Reachable")).toBe(false);
  expect(holds(before, "BMCReachable")).toBe(false);
});

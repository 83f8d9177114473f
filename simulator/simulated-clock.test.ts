import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSimulatedClock } from "./simulated-clock.ts";

const anchor = { realAt: 1_000, simulatedAt: 50_000, speed: 20 };

describe("simulated clock", () => {
  test("runs at its speed from the anchor on", () => {
    const clock = createSimulatedClock(anchor, () => 1_100);
    expect(clock.now()).toBe(52_000);
    expect(clock.realTimeOf(52_000)).toBe(1_100);
  });

  test("a change of speed moves nothing, and its anchor resumes the same time in another process", () => {
    const speeds = fc.double({ min: 0.001, max: 1_000, noNaN: true });
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 60_000 }), speeds), { maxLength: 20 }), (steps) => {
        let real = 1_000;
        let latest = anchor;
        const clock = createSimulatedClock(anchor, () => real);
        for (const [wait, speed] of steps) {
          real += wait;
          const before = clock.now();
          latest = clock.setSpeed(speed);
          expect(clock.now()).toBeCloseTo(before, 3);
        }
        real += 777;
        expect(createSimulatedClock(latest, () => real).now()).toBeCloseTo(clock.now(), 3);
      }),
    );
  });
});

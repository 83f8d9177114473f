import { describe, expect, test } from "vitest";
import { toneOf } from "./tone.ts";

const HOUR = 3_600_000;
const now = 100 * HOUR;
const at = (state: Partial<NonNullable<Parameters<typeof toneOf>[0]["state"]>>) => ({
  state: { resting: false, terminal: false, trouble: false, ...state },
  now,
});
const sla = { seconds: 3_600n, nanos: 0 } as never;

describe("the tone of a thing", () => {
  test("is calm at rest, at its end, and while its table is not known", () => {
    expect(toneOf(at({ resting: true }))).toBe("calm");
    expect(toneOf(at({ terminal: true }))).toBe("calm");
    expect(toneOf({ state: undefined, now })).toBe("calm");
  });

  test("is working until the state's SLA has passed, and trouble from then on", () => {
    expect(toneOf({ ...at({ sla }), since: now - HOUR })).toBe("working");
    expect(toneOf({ ...at({ sla }), since: now - HOUR - 1 })).toBe("trouble");
    expect(toneOf(at({ sla }))).toBe("working");
  });

  test("is the gravest of what is so", () => {
    expect(toneOf({ ...at({ resting: true }), isWaiting: true })).toBe("waiting");
    expect(toneOf({ ...at({ resting: true, trouble: true }), isWaiting: true })).toBe("trouble");
    expect(toneOf({ ...at({ resting: true }), isFailing: true })).toBe("trouble");
    expect(toneOf({ ...at({ trouble: true }), isFailing: true, needsPerson: true })).toBe("person");
  });
});

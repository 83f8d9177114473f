import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CAUSES, type Cause, type CauseCode, type CauseFacts, FACTS, type FactName, PEERS } from "./causes.ts";
import { causeDetails, causeInDetails, parseCause } from "./stored-cause.ts";

const CODES = Object.keys(CAUSES) as CauseCode[];
const FACT_NAMES = Object.keys(FACTS) as FactName[];
const valueFor = (name: FactName): fc.Arbitrary<string | number> => {
  if (name === "at") return fc.constantFrom(...Object.keys(PEERS));
  return name === "status" || name === "exit_code" ? fc.integer() : fc.string();
};
const facts = fc.record(Object.fromEntries(FACT_NAMES.map((name) => [name, valueFor(name)])), { requiredKeys: [] });
const causes: fc.Arbitrary<Cause> = fc
  .record({ code: fc.constantFrom(...CODES), facts })
  .map(({ code, facts: found }) => (Object.keys(found).length === 0 ? { code } : { code, facts: found as CauseFacts }));

describe("a cause that was stored", () => {
  test("is read back as it was", () => {
    fc.assert(
      fc.property(causes, (cause) => {
        const read = parseCause(JSON.parse(JSON.stringify(cause)));
        expect(read).toEqual(cause);
      }),
    );
  });

  test("whatever is there instead is read without an error, and nothing that is not ours comes of it", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (stored) => {
        const read = parseCause(stored);
        if (read !== null) expect(CODES).toContain(read.code);
      }),
    );
    expect(parseCause({ code: "of_tomorrow", facts: { at: "moon" } })).toEqual({ code: "unknown" });
    expect(parseCause({ code: "busy", facts: { at: "moon", status: "503", address: "a:1" } })).toEqual({
      code: "busy",
      facts: { address: "a:1" },
    });
    expect(parseCause(undefined)).toBeNull();
  });

  test("stands in the details of an error as texts, and is read back from them", () => {
    fc.assert(
      fc.property(causes, (cause) => {
        const details = causeDetails(cause);
        for (const text of Object.values(details)) expect(typeof text).toBe("string");
        expect(causeInDetails({ step: "reboot", ...details })).toEqual(cause);
      }),
    );
    expect(causeInDetails({ step: "reboot" })).toBeNull();
    expect(Object.keys(FACTS)).not.toContain("step");
    expect(Object.keys(FACTS)).not.toContain("cause");
  });
});

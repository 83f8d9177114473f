import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { matchesPattern, ruleCovers } from "./fault-rule.ts";

const fault = { type: "drop" } as const;

describe("patterns", () => {
  test("without a star only the text itself matches", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[ab]{0,3}$/), fc.stringMatching(/^[ab]{0,3}$/), (pattern, text) => {
        expect(matchesPattern(pattern, text)).toBe(pattern === text);
      }),
    );
  });

  test("match exactly what the regular expression of the same meaning matches", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[ab*]{1,8}$/), fc.stringMatching(/^[ab]{0,10}$/), (pattern, text) => {
        expect(matchesPattern(pattern, text)).toBe(new RegExp(`^${pattern.replace(/\*+/g, ".*")}$`).test(text));
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("where a rule strikes", () => {
  const occasion = { device: "rack-1-shelf-2", method: "GET", path: "/redfish/v1/Chassis/powershelf" };

  test.each([
    ["its device", { device: "rack-1-shelf-2" }, true],
    ["another device", { device: "rack-1-shelf-3" }, false],
    ["every device", { device: "*" }, true],
    ["the devices of a rack", { device: "rack-1-*" }, true],
    ["a rack whose name only begins alike", { device: "rack-10-*" }, false],
    ["its method", { device: "*", method: "GET" as const }, true],
    ["another method", { device: "*", method: "POST" as const }, false],
    ["a prefix of the path", { device: "*", path: "/redfish/v1/Chassis" }, true],
    ["a pattern for the path", { device: "*", path: "*/powershelf" }, true],
    ["a pattern for the path that ends too early", { device: "*", path: "/redfish/*/Chassis" }, false],
  ])("%s", (_what, where, covered) => {
    expect(ruleCovers({ ...where, fault }, occasion)).toBe(covered);
  });

  test("a rule for a path does not cover what happens at the rack", () => {
    expect(ruleCovers({ device: "*", path: "/", fault }, { device: "rack-1-shelf-2" })).toBe(false);
  });
});

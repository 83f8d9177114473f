import { describe, expect, test } from "vitest";
import { BUILT_IN_PLANS } from "../../plans/built-in.ts";
import { chooseRunType, DEFAULT_PLANS, parseRunType, RUN_TYPES } from "./run-types.ts";

describe("a run type", () => {
  test.each([
    ["REPAVE", "plan/repave-join"],
    ["RMA", "plan/rma"],
    ["REBOOT", "plan/reboot"],
    ["UPGRADE", "plan/upgrade"],
    ["NET_RECONFIG", "plan/net-reconfig"],
    ["JOIN", "plan/join"],
  ] as const)("%s is served by %s", (type, planId) => {
    expect(chooseRunType({ type, planId: "" })).toEqual({ type, planId });
    expect(BUILT_IN_PLANS.map((plan) => plan.planId)).toContain(planId);
  });

  test("of the specification is known, and JOIN beside them", () => {
    expect(RUN_TYPES).toEqual(["REPAVE", "RMA", "REBOOT", "UPGRADE", "NET_RECONFIG", "JOIN"]);
    expect(Object.keys(DEFAULT_PLANS)).toEqual(RUN_TYPES);
  });

  test.each([
    ["repave", "REPAVE"],
    ["net-reconfig", "NET_RECONFIG"],
    ["net_reconfig", "NET_RECONFIG"],
  ] as const)("may be written %s", (text, type) => {
    expect(parseRunType(text)).toBe(type);
  });

  test.each(["EXPLODE", "constructor", "RE PAVE"])("%j is refused with those that are known", (text) => {
    expect(() => chooseRunType({ type: text, planId: "plan/reboot" })).toThrow(
      expect.objectContaining({
        kind: "invalid_argument",
        message: `type: "${text}" is not a run type; known: REPAVE, RMA, REBOOT, UPGRADE, NET_RECONFIG, JOIN`,
        detail: { field: "type" },
      }),
    );
  });

  test("gives way to a plan that is named, and may be left out beside it", () => {
    expect(chooseRunType({ type: "REPAVE", planId: "mine" })).toEqual({ type: "REPAVE", planId: "mine" });
    expect(chooseRunType({ type: "", planId: "mine" })).toEqual({ type: "", planId: "mine" });
  });

  test("may not be left out together with the plan", () => {
    expect(() => chooseRunType({ type: "", planId: "" })).toThrow("type: is required unless plan_id is given");
  });
});

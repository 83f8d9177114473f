import { describe, expect, test } from "vitest";
import type { ObservedCondition } from "../../lifecycles/machine/conditions.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import type { RunType } from "../../runs/model/plan/run-types.ts";
import { DEFAULT_PLANS } from "../../runs/model/plan/run-types.ts";
import { BUILT_IN_PLANS } from "../../runs/plans/built-in.ts";
import { allSteps } from "../../runs/steps/index.ts";
import { disturbedCluster, findTypeContradictions, nameSilentSystem } from "./hazards.ts";

const planOf = (planId: string) => {
  const plan = BUILT_IN_PLANS.find((each) => each.planId === planId);
  if (!plan) throw new Error(`there is no plan ${planId}`);
  return plan;
};
const machineWith = (...types: readonly ObservedCondition["type"][]): Machine =>
  ({
    spec: { targetCluster: "prod" },
    facts: { joinedCluster: null },
    state: { name: "IN_SERVICE" },
    conditions: types.map((type) => ({ type, status: true, reason: "", message: "" })),
  }) as unknown as Machine;

describe("the cluster that a run disturbs", () => {
  const of = (machine: Machine, planId: string) => disturbedCluster({ machine, plan: planOf(planId) }, allSteps);

  test.each([
    ["REPAVE", "prod"],
    ["REBOOT", "prod"],
    ["NET_RECONFIG", "prod"],
    ["UPGRADE", ""],
    ["RMA", ""],
  ] as const)("of the plan of a %s on a machine that serves is %j", (type, cluster) => {
    expect(of(machineWith("InCustomerCluster"), DEFAULT_PLANS[type])).toBe(cluster);
  });

  test("is none of a machine that is drained, or in no cluster", () => {
    for (const machine of [machineWith("InCustomerCluster", "Drained"), machineWith()])
      expect(of(machine, DEFAULT_PLANS.REPAVE)).toBe("");
  });
});

describe("a type contradicts the plan", () => {
  test.each([
    [
      "REBOOT",
      "plan/repave-join",
      "type REBOOT contradicts plan plan/repave-join: the plan installs another system (step repave-image)",
    ],
    ["REPAVE", "plan/reboot", "type REPAVE contradicts plan plan/reboot: the plan has no repave step"],
    ["NET_RECONFIG", "plan/reboot", "type NET_RECONFIG contradicts plan plan/reboot: the plan has no net step"],
    [
      "UPGRADE",
      "plan/rma",
      "type UPGRADE contradicts plan plan/rma: the plan takes the machine out of service (step mark-rma)",
    ],
  ] as const)("%s with %s", (type, planId, text) => {
    expect(findTypeContradictions({ type, plan: planOf(planId) })).toEqual([text]);
  });

  test("never with its own plan, with a plan for the same, or without a type", () => {
    for (const [type, planId] of Object.entries(DEFAULT_PLANS))
      expect(findTypeContradictions({ type: type as RunType, plan: planOf(planId) })).toEqual([]);
    expect(findTypeContradictions({ type: "REPAVE", plan: planOf("plan-repave-ubuntu-2204-v1") })).toEqual([]);
    expect(findTypeContradictions({ type: "", plan: planOf("plan/rma") })).toEqual([]);
  });
});

describe("before the return of a machine whose system is silent", () => {
  const silent = (...others: readonly object[]) =>
    ({ id: "m-1", conditions: [{ type: "Reachable", status: false }, ...others] }) as unknown as Machine;
  const named = (machine: Machine, params: Readonly<Record<string, string>> = {}, planId: string = DEFAULT_PLANS.RMA) =>
    nameSilentSystem({ machine, plan: planOf(planId) }, params);

  test.each([
    ["false", /step drain-check would wait for it.*params\.force=true leaves out/],
    ["true", /step drain-check is left out by force=true/],
  ])("the preview says what each step does without it, with force=%s", (force, drain) => {
    expect(named(silent(), { force })).toEqual([
      expect.stringMatching(drain),
      "machine m-1 does not answer over SSH: step graceful-shutdown resets it through its BMC",
    ]);
  });

  test("its cluster is asked where it is a node", () => {
    expect(named(silent({ type: "InCustomerCluster", status: true }))[0]).toContain("asks its cluster instead");
  });

  test("no force helps a script that is not the drain check, or one that asks for another node", () => {
    const plan = planOf(DEFAULT_PLANS.RMA);
    const of = (payload: object) => {
      const [first, ...rest] = plan.steps;
      const steps = [
        { ...(first as (typeof plan.steps)[0]), payload: payload as { args: Record<string, string> } },
        ...rest,
      ];
      return nameSilentSystem({ machine: silent(), plan: { ...plan, steps } }, { force: "true" })[0];
    };
    const cannot = "step drain-check would wait for it; params.force does not leave that out";
    expect(of({ script_ref: "own.sh", args: {} })).toContain(cannot);
    expect(of({ script_ref: "drain_check.sh", args: { node: "other" } })).toContain(cannot);
  });

  test("nothing is said of a system that answers, of one that nobody has asked, or of another plan", () => {
    expect(named(machineWith("Reachable"))).toEqual([]);
    expect(named(machineWith())).toEqual([]);
    expect(named(silent(), {}, DEFAULT_PLANS.REBOOT)).toEqual([]);
  });
});

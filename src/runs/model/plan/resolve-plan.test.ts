import { describe, expect, test } from "vitest";
import { aMachine } from "../../../../test/support/runs/step-bench.ts";
import type { JsonObject } from "../../../kernel/lifecycle.ts";
import type { Machine } from "../../../lifecycles/machine/machine.ts";
import { allSteps } from "../../steps/index.ts";
import { machineTarget } from "../../targets/machine.ts";
import type { Plan } from "./plan.ts";
import { resolvePlan } from "./resolve-plan.ts";

const inCluster = (joinedCluster: string | null): Machine => {
  const machine = aMachine({ targetCluster: "wanted" });
  return { ...machine, facts: { ...machine.facts, joinedCluster } };
};

/** `kind` or `kind:cluster` a step. */
const planOf = (...steps: string[]): Plan => ({
  planId: "p",
  displayName: "",
  steps: steps.map((text, index) => {
    const [kind = "", cluster = ""] = text.split(":");
    const payload = kind === "repave" ? { image_ref: "ubuntu" } : { cluster_ref: cluster };
    return { name: `s${index}`, kind, timeoutSeconds: 1, maxRetries: 0, payload };
  }),
});

const clustersOf = (machine: Machine, ...steps: string[]) =>
  resolvePlan(planOf(...steps), { kind: machineTarget, target: machine, params: {}, steps: allSteps }).steps.map(
    ({ payload }) => payload.cluster_ref ?? "",
  );

describe("a step that names no cluster means", () => {
  test("the one that the machine is in, whatever its owner says by now; else the one it is to join", () => {
    expect(clustersOf(inCluster("where-it-is"), "verify")).toEqual(["where-it-is"]);
    expect(clustersOf(inCluster(null), "verify")).toEqual(["wanted"]);
  });

  test("for a join the one that the owner says, wherever the machine is", () => {
    expect(clustersOf(inCluster("where-it-is"), "join", "verify")).toEqual(["wanted", "wanted"]);
    expect(clustersOf(inCluster("where-it-is"), "repave", "join", "verify")).toEqual(["", "wanted", "wanted"]);
  });

  test("after an installation the one that the machine is to join, and after a join the one that was joined", () => {
    expect(clustersOf(inCluster("where-it-is"), "verify", "repave", "verify")).toEqual(["where-it-is", "", "wanted"]);
    expect(clustersOf(inCluster(null), "join:named", "verify", "verify:other")).toEqual(["named", "named", "other"]);
  });
});

describe("a restart", () => {
  const forceOf = (payload: JsonObject, params: Readonly<Record<string, string>>) => {
    const step = { name: "restart", kind: "reboot", timeoutSeconds: 1, maxRetries: 0, payload };
    const plan = { planId: "p", displayName: "", steps: [step] };
    return resolvePlan(plan, { kind: machineTarget, target: inCluster(null), params, steps: allSteps }).steps[0]
      ?.payload;
  };

  test.each([
    [{ force: false, mode: "bmc" }, {}, { force: false, mode: "bmc" }],
    [{ force: true, mode: "bmc" }, {}, { force: true, mode: "bmc" }],
    [{ mode: "in_band" }, { force: "true" }, { force: true, mode: "in_band" }],
    [{ force: true, mode: "bmc" }, { force: "false" }, { force: false, mode: "bmc" }],
  ])("of a plan that says %j is, with the params %j, %j", (payload, params, restart) => {
    expect(forceOf(payload, params)).toEqual(restart);
  });
});

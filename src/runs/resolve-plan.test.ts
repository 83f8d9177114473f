import { describe, expect, test } from "vitest";
import type { Machine } from "../lifecycles/machine/machine.ts";
import type { Plan } from "./plan.ts";
import { resolvePlan } from "./resolve-plan.ts";
import { allSteps } from "./steps/index.ts";
import { aMachine } from "./steps/step-bench.ts";

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
  resolvePlan(planOf(...steps), { machine, params: {}, steps: allSteps }).steps.map(
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

import { describe, expect, test } from "vitest";
import { NOTHING_KNOWN } from "../../../test/support/unknown-machine.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import type { Plan } from "../../runs/model/plan/plan.ts";
import { BUILT_IN_PLANS } from "../../runs/plans/built-in.ts";
import { allSteps } from "../../runs/steps/index.ts";
import type { ClusterVerdict } from "../catalog/cluster-gate.ts";
import {
  clustersToProbe,
  nameNodeLeftBehind,
  nameSilentClusters,
  refuseClusters,
  refuseJoinElsewhere,
} from "./cluster-checks.ts";

const machine = (more: object = {}, provider = "datacenter") =>
  ({
    id: "m-1",
    spec: { provider, targetCluster: "new" },
    facts: { ...NOTHING_KNOWN, joinedCluster: "old" },
    conditions: [{ type: "InCustomerCluster", status: true }],
    ...more,
  }) as unknown as Machine;
const planOf = (planId: string, cluster = "new"): Plan => {
  const plan = BUILT_IN_PLANS.find((each) => each.planId === planId);
  if (!plan) throw new Error(`there is no ${planId}`);
  const steps = plan.steps.map((step) => ({
    ...step,
    payload: "cluster_ref" in step.payload ? { ...step.payload, cluster_ref: cluster } : step.payload,
  }));
  return { ...plan, steps };
};
const deps = { steps: allSteps, clusterProbes: { verdictsOf: async () => new Map() } };
const verdicts = (verdict: ClusterVerdict) => new Map([["new", verdict]]);
const run = (planId: string, of = machine()) => ({ machine: of, plan: planOf(planId) });

describe("the clusters of a run", () => {
  test("are tried once each where a step works with them, and of fake machines none is", () => {
    expect(clustersToProbe(deps, run("plan/repave-join"), new Map())).toEqual(["new"]);
    expect(clustersToProbe(deps, run("plan/repave-join"), verdicts({ is: "open", missing: [] }))).toEqual([]);
    expect(clustersToProbe(deps, run("plan/reboot"), new Map())).toEqual([]);
    expect(clustersToProbe(deps, run("plan/repave-join", machine({}, "fake")), new Map())).toEqual([]);
  });

  // biome-ignore format: a table is read by its columns
  test.each<[string, string, ClusterVerdict, string | undefined]>([
    ["shut",                              "plan/join",    { is: "shut", message: "status 401" },          "step join-cluster cannot use cluster new: status 401"],
    ["shut, for a verification alone",    "plan/upgrade", { is: "shut", message: "status 401" },          "step verify-upgrade cannot use cluster new: status 401"],
    ["without the right to mint",         "plan/join",    { is: "open", missing: ["mint_tokens"] },       "may not create secrets in kube-system"],
    ["without what a join needs",         "plan/upgrade", { is: "open", missing: ["mint_tokens"] },       undefined],
    ["without what only a drain needs",   "plan/join",    { is: "open", missing: ["evict_pods"] },        undefined],
    ["without the right to list nodes",   "plan/upgrade", { is: "open", missing: ["list_nodes"] },        "may not list nodes"],
    ["silent",                            "plan/join",    { is: "silent", message: "status 503" },        undefined],
  ])("%s: %s", (_, planId, verdict, expected) => {
    const refused = refuseClusters(deps, run(planId), verdicts(verdict)).map(({ message }) => message);
    expect(refused).toEqual(expected === undefined ? [] : [expect.stringContaining(expected)]);
  });

  test("that are silent are waited for", () => {
    expect(nameSilentClusters(deps, run("plan/join"), verdicts({ is: "silent", message: "status 503" }))).toEqual([
      "step join-cluster would wait for its cluster: status 503",
    ]);
  });

  test("take no node of another one, unless its system is replaced or a script may take it out first", () => {
    const refused = (of: { readonly machine: Machine; readonly plan: Plan }) =>
      refuseJoinElsewhere(deps, of).map(({ message }) => message);
    expect(refused(run("plan/join"))).toEqual([
      expect.stringMatching(/m-1 is a node of cluster old: step join-cluster cannot join it to new as well; repave it/),
    ]);
    expect(refused(run("plan/repave-join"))).toEqual([]);
    expect(refused(run("plan/reboot"))).toEqual([]);
    expect(refused({ machine: machine(), plan: planOf("plan/join", "old") })).toEqual([]);
    // Its node was deleted since, or nobody has seen it yet.
    expect(refused(run("plan/join", machine({ conditions: [] })))).toEqual([]);
    expect(refused(run("plan/join", machine({ facts: NOTHING_KNOWN })))).toEqual([]);
    const { plan } = run("plan/join");
    const script = {
      name: "leave",
      kind: "ssh",
      timeoutSeconds: 60,
      maxRetries: 0,
      payload: { script_ref: "leave.sh" },
    };
    expect(refused({ machine: machine(), plan: { ...plan, steps: [script, ...plan.steps] } })).toEqual([]);
  });

  test("are named where the machine leaves a node behind in another one", () => {
    expect(nameNodeLeftBehind(deps, run("plan/repave-join"))).toEqual([
      expect.stringContaining("machine m-1 is a node of cluster old, and the run joins it to new"),
    ]);
    expect(nameNodeLeftBehind(deps, run("plan/upgrade"))).toEqual([]);
    expect(nameNodeLeftBehind(deps, run("plan/join", machine({ conditions: [] })))).toEqual([]);
    expect(nameNodeLeftBehind(deps, { machine: machine(), plan: planOf("plan/join", "old") })).toEqual([]);
  });
});

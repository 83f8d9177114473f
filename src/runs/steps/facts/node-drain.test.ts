import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { benchOf, exited, type Fakes, unreachable } from "../../../../test/support/runs/step-bench.ts";
import type { ClusterNode, DrainScope, RefusedEviction } from "../../../capabilities/cluster.ts";
import { StepFailure } from "../../../kernel/errors.ts";

const REF = "drain_node.sh";
const shipped = { [REF]: readFileSync("runbooks/drain_node.sh", "utf8") };
const at = (second: number) => new Date(second * 1_000);

/** A machine that is a node with two pods. Its own system is not asked. */
function aNode({ args = {}, found = true }: { args?: Record<string, string>; found?: boolean } = {}) {
  const calls: string[] = [];
  const cluster = { pods: ["d/a", "d/b"], unschedulable: false, refused: [] as RefusedEviction[] };
  const node = (): ClusterNode => ({
    ...{ name: "n1", uid: "u", ready: true, reason: "", unschedulable: cluster.unschedulable, systemUuid: null },
    ...{ bootId: null, kubeletVersion: null, matchedBy: "serial" },
  });
  const can: Fakes = {
    exec: { run: unreachable, readFile: unreachable },
    cluster: {
      findNode: async () => (found ? node() : undefined),
      setSchedulable: async (_target, name, schedulable, _call, by) => {
        calls.push(`${schedulable ? "uncordon" : "cordon"} ${name} by ${by}`);
        cluster.unschedulable = !schedulable;
      },
      drain: async (_target, name, _call, scope: DrainScope) => {
        calls.push(`drain ${name} ${JSON.stringify(scope)}`);
        return { remaining: cluster.pods, refused: cluster.refused };
      },
    },
    nodes: { listWorkloads: async () => cluster.pods },
  };
  const bench = (more: Parameters<typeof benchOf>[3] = {}) =>
    benchOf("ssh", { script_ref: REF, args }, can, { scripts: shipped, ...more });
  return { bench, calls, cluster };
}

describe("the shipped drain of a node", () => {
  test("is done by its cluster: cordoned by the run, asked to go, asked again, and over when nothing is left", async () => {
    const { bench, calls, cluster } = aNode();
    const evidence = await bench().before();
    expect(evidence).toMatchObject({ emptiedBy: "cluster" });
    expect(await bench().probe(evidence)).toMatchObject({
      state: "not_done",
      message: "node n1 of c1 is not cordoned",
    });
    const begun = (await bench().act(evidence)) as { receipt: Record<string, string> };
    expect(calls).toEqual(["cordon n1 by run", 'drain n1 {"barePods":false,"localData":false}']);
    const around = { actingAt: at(0), now: at(10), receipt: begun.receipt };
    expect(await bench(around).probe(evidence)).toMatchObject({
      state: "halfway",
      message: "node n1 of c1: 2 pods remain: d/a, d/b",
    });
    cluster.refused = [{ pod: "d/b", by: "disruption_budget", why: "needs 1 healthy" }];
    expect(await bench(around).carryOn(evidence)).toEqual({
      receipt: { said: "2 pods remain: d/a, d/b; the cluster keeps d/b (needs 1 healthy)" },
    });
    cluster.pods = [];
    expect(await bench(around).probe(evidence)).toMatchObject({
      state: "done",
      message: expect.stringContaining("is drained"),
    });
    await expect(bench(around).undo(evidence)).resolves.toBeUndefined();
  });

  test("takes bare pods and local data along only where the plan says so", async () => {
    const told = aNode({ args: { evict_bare_pods: "true", delete_local_data: "true" } });
    await told.bench().act(await told.bench().before());
    expect(told.calls.at(-1)).toBe('drain n1 {"barePods":true,"localData":true}');
    const { bench, cluster } = aNode();
    const evidence = await bench().before();
    cluster.refused = [{ pod: "d/a", by: "bare", why: "" }];
    await expect(bench().act(evidence)).rejects.toMatchObject({
      code: "not_drained",
      message: expect.stringContaining("args evict_bare_pods=true"),
    });
    cluster.refused = [{ pod: "d/a", by: "local_data", why: "" }];
    await expect(bench().carryOn(evidence)).rejects.toThrow("args delete_local_data=true");
  });

  test("gives up in the time that the plan gives it", async () => {
    const { bench, cluster } = aNode({ args: { timeout: "30" } });
    cluster.unschedulable = true;
    const evidence = await bench().before();
    const probeAt = (second: number) => bench({ actingAt: at(0), now: at(second) }).probe(evidence);
    expect(await probeAt(29)).toMatchObject({ state: "halfway" });
    await expect(probeAt(30)).rejects.toMatchObject({
      code: "not_drained",
      message: expect.stringMatching(/30 s after/),
    });
  });

  test("of a node that is cordoned already leaves it to whom it is", async () => {
    const { bench, calls, cluster } = aNode();
    cluster.unschedulable = true;
    await bench().act(await bench().before());
    expect(calls).toEqual([expect.stringMatching(/^drain/)]);
  });

  test.each([
    ["no node of its cluster is the machine", { found: false }, {}],
    ["the plan names a node", { args: { node: "other" } }, {}],
    ["the plan names a kubeconfig", { args: { kubeconfig: "/root/.kube/config" } }, {}],
    ["the site has a script of its own", {}, { scripts: { [REF]: "exit 0\n" } }],
    [
      "its cluster is not on record",
      {},
      {
        targets: {
          cluster: async () => {
            throw new StepFailure("reference_missing", "there is no cluster", {
              facts: { what: "cluster", name: "c1" },
            });
          },
        },
      },
    ],
  ])("is left to the machine where %s", async (_where, given, around) => {
    expect(await aNode(given).bench(around).before()).not.toHaveProperty("emptiedBy");
  });

  test("waits for a cluster that is silent", async () => {
    const silent: Fakes = { exec: { run: async () => exited(0) }, cluster: { findNode: unreachable }, nodes: {} };
    const bench = benchOf("ssh", { script_ref: REF }, silent, { scripts: shipped });
    await expect(bench.before()).rejects.toMatchObject({ disposition: "retry" });
  });
});

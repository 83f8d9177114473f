import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { benchOf, exited, type Fakes, unreachable } from "../../../../test/support/runs/step-bench.ts";
import type { ClusterNode } from "../../../capabilities/cluster.ts";
import { StepFailure } from "../../../kernel/errors.ts";

const REF = "drain_check.sh";
const shipped = { [REF]: readFileSync("runbooks/drain_check.sh", "utf8") };
const aNode: ClusterNode = {
  name: "n1",
  uid: "u",
  ready: false,
  reason: "Kubelet stopped posting node status.",
  unschedulable: true,
  systemUuid: null,
  bootId: null,
  kubeletVersion: null,
  matchedBy: "serial",
};

/** A machine whose system is dead, and a cluster that says what the test writes down. */
function deadMachine(
  cluster: { node?: Partial<ClusterNode>; pods?: readonly string[]; going?: readonly string[] },
  around: Parameters<typeof benchOf>[3] & { readonly args?: Record<string, string> } = {},
) {
  const can: Fakes = {
    exec: { run: unreachable, readFile: unreachable },
    cluster: { findNode: async () => (cluster.node === undefined ? undefined : { ...aNode, ...cluster.node }) },
    nodes: { listWorkloads: async () => cluster.pods ?? [], listGoing: async () => cluster.going ?? [] },
  };
  return benchOf("ssh", { script_ref: REF, args: around.args ?? { force: "false" } }, can, {
    scripts: shipped,
    ...around,
  });
}

describe("the drain check of a machine whose system is dead", () => {
  test("is answered by its cluster", async () => {
    const bench = deadMachine({ node: {} });
    const evidence = await bench.before();
    expect(evidence).toMatchObject({ drain: "cluster" });
    expect(await bench.probe(evidence)).toMatchObject({ state: "done", message: expect.stringContaining("node n1") });
    await expect(bench.undo(evidence)).resolves.toBeUndefined();
  });

  test.each([
    [{ node: { unschedulable: false } }, "is not cordoned"],
    [{ node: {}, pods: ["d/a", "d/b"] }, "2 pods remain: d/a, d/b"],
  ])("of %j fails, with force=true as well", async (cluster, why) => {
    for (const params of [{}, { force: "true" }]) {
      const bench = deadMachine(cluster, { params });
      const evidence = await bench.before();
      await expect(bench.probe(evidence)).rejects.toMatchObject({ code: "not_drained" });
      await expect(bench.probe(evidence)).rejects.toThrow(why);
    }
  });

  test("by force does not wait for pods that were told to end, which only the dead kubelet could confirm", async () => {
    const cluster = { node: {}, pods: ["d/a"], going: ["d/a"] };
    const patient = deadMachine(cluster);
    await expect(patient.probe(await patient.before())).rejects.toMatchObject({ code: "not_drained" });
    const forced = deadMachine(cluster, { params: { force: "true" } });
    expect(await forced.probe(await forced.before())).toMatchObject({
      state: "done",
      message: expect.stringContaining("cannot confirm: 1"),
    });
    const alive = deadMachine({ ...cluster, node: { ready: true } }, { params: { force: "true" } });
    await expect(alive.probe(await alive.before())).rejects.toMatchObject({ code: "not_drained" });
  });

  test("is asked of the machine where it is no node of its cluster, and of nobody with force=true", async () => {
    const asked = deadMachine({}, { isReplacedNext: true });
    const evidence = await asked.before();
    expect(evidence).not.toHaveProperty("drain");
    expect(await asked.probe(evidence)).toMatchObject({
      state: "unknown",
      message: expect.stringContaining("the param force=true leaves out what only its system could answer"),
    });
    const forced = deadMachine({}, { params: { force: "true" } });
    const skipped = await forced.before();
    expect(skipped).toMatchObject({ drain: "nobody" });
    expect(await forced.probe(skipped)).toMatchObject({
      state: "done",
      message: expect.stringContaining("not checked"),
    });
  });

  test("where no cluster is on record is asked of the machine", async () => {
    const cluster = async () => {
      throw new StepFailure("reference_missing", "there is no cluster", { facts: { what: "cluster", name: "c1" } });
    };
    expect(await deadMachine({ node: {} }, { targets: { cluster } }).before()).not.toHaveProperty("drain");
  });

  test.each([
    ["a site's own script", { scripts: { [REF]: "exit 0\n" } }],
    ["a node that the plan names", { args: { force: "false", node: "other" } }],
    ["a plan that forces it", { args: { force: "true" } }],
  ])("is asked of the machine with %s", async (_what, around) => {
    expect(await deadMachine({ node: {} }, around).before()).not.toHaveProperty("drain");
  });

  test("waits for a cluster that is silent", async () => {
    const silent: Fakes = { exec: { run: async () => exited(0) }, cluster: { findNode: unreachable }, nodes: {} };
    const bench = benchOf("ssh", { script_ref: REF, args: { force: "false" } }, silent, { scripts: shipped });
    await expect(bench.before()).rejects.toMatchObject({ disposition: "retry" });
  });
});

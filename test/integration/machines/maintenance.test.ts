import { describe, expect, test } from "vitest";
import { MachineStatus_Phase, Run_Phase, type Step } from "../../../contract/baremetal/v1/baremetal_pb.js";
import type { ClusterTarget } from "../../../src/capabilities/cluster-target.ts";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { seconds } from "../../../src/kernel/time/duration.ts";
import { createKubernetesClient } from "../../../src/providers/kubernetes/client.ts";
import { targetOfKubeconfig } from "../../../src/providers/kubernetes/kubeconfig.ts";
import { createKubernetesProvider } from "../../../src/providers/kubernetes/kubernetes-provider.ts";
import { type ConditionBench, openConditionBench } from "../../support/condition-bench.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunBench, startRunBench } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let bench: RunBench;
let looks: ConditionBench;
let cluster: ClusterTarget;
const kubernetes = createKubernetesProvider();
let number: number;

beforeAll(async () => {
  // Slow enough that a drain can be watched: pods take five simulated seconds to go.
  bench = await startRunBench({ speed: 4 });
  looks = openConditionBench(bench);
  const [known] = await bench.control<{ name: string; kubeconfig: string }[]>("GET", "/clusters");
  if (!known) throw new Error("the simulator has no cluster");
  cluster = targetOfKubeconfig(known.name, known.kubeconfig);
  looks.start({ interval: seconds(1) });
  number = 0;
});
afterAll(async () => {
  await looks.close();
  await bench.close();
  kubernetes.close();
});

/** A machine that serves in its cluster. */
async function inService(): Promise<string> {
  number += 1;
  const id = `m-rack1-${String(number).padStart(2, "0")}`;
  await bench.control("POST", `/devices/${id}/join`, { cluster: cluster.name });
  await looks.becomes(id, "InCustomerCluster", true);
  await eventually(async () => (await phaseOf(id)) === "READY", { what: `${id} is READY` });
  return id;
}

const statusOf = async (machineId: string) => (await bench.machines.getMachine({ machineId })).status;
const phaseOf = async (id: string) => MachineStatus_Phase[(await statusOf(id))?.phase ?? 0];
const nodeOf = async (id: string) => {
  const found = bench.simulated.find(({ machine_id }) => machine_id === id);
  const identity = { systemUuid: found?.system_uuid ?? null, serial: null, addresses: [] };
  return kubernetes.can.cluster.findNode(cluster, identity, aCall());
};
const workloadsOf = (id: string) => kubernetes.can.nodes.listWorkloads(cluster, id, aCall());
const enter = (machineId: string) => bench.lifecycle.enterMaintenance({ machineId, comment: "" });
const exit = (machineId: string) => bench.lifecycle.exitMaintenance({ machineId, comment: "" });
const waitsFor = (id: string, what: RegExp) =>
  eventually(async () => what.exec((await statusOf(id))?.waitingFor ?? "")?.[0], {
    what: `${id} waits for ${what}`,
    seen: async () => JSON.stringify((await statusOf(id))?.waitingFor),
  });
const uncordoned = (id: string) =>
  eventually(async () => (await nodeOf(id))?.unschedulable === false, { what: `${id} takes pods again` });

test("entering maintenance empties the node, says what it waits for meanwhile, and leaving it hands the node back", async () => {
  const id = await inService();
  await enter(id);
  expect(await waitsFor(id, /3 pods remain: .*/)).toMatch(/default\/web-7d4f-\w+/);
  await looks.becomes(id, "Drained", true, "NodeDrained");
  expect(await workloadsOf(id)).toEqual([]);
  expect(await nodeOf(id)).toMatchObject({ unschedulable: true, cordonedByUs: true });
  await eventually(async () => (await statusOf(id))?.waitingFor === "", { what: `${id} waits for nothing` });
  await exit(id);
  await uncordoned(id);
  await looks.becomes(id, "Drained", false, "NotCordoned");
  const [row] = await bench.db.query<{ cordoned: unknown }>(
    "select facts -> 'cordoned' as cordoned from machines where id = $1",
    [id],
  );
  expect(row?.cordoned).toBeNull();
});

test("a node that somebody else cordoned is drained, and stays cordoned afterwards", async () => {
  const id = await inService();
  await cordonByHand(id);
  await enter(id);
  await looks.becomes(id, "Drained", true, "NodeDrained");
  await exit(id);
  await eventually(async () => (await phaseOf(id)) === "READY" && (await settled(id)), { what: `${id} is at rest` });
  await looks.looked(id, 2);
  expect(await nodeOf(id)).toMatchObject({ unschedulable: true, cordonedByUs: false });
});

test("what a run that was cut short had cordoned is handed back with the machine, and nobody need wait for a pass", async () => {
  const id = await inService();
  const { runId } = await bench.runs.startRun({ machineId: id, requestId: "cordons", type: "UPGRADE" });
  await eventually(async () => (await nodeOf(id))?.unschedulable, { what: `${id} is cordoned` });
  expect(await nodeOf(id)).toMatchObject({ cordonedByUs: true });
  await bench.runs.cancelRun({ runId });
  await bench.ended(runId);
  expect(await phaseOf(id)).toBe("MAINTENANCE");
  await exit(id);
  await uncordoned(id);
});

test("a run's scripts do not give back what a maintenance keeps out of use: Drained stays true of it", async () => {
  const id = await inService();
  await enter(id);
  await looks.becomes(id, "Drained", true, "NodeDrained");
  const planId = "plan-empties-and-gives-back";
  const scripts = ["cordon_node", "drain_node", "uncordon_node"];
  const steps = scripts.map((name) => ({ name, kind: { case: "ssh", value: { scriptRef: `${name}.sh` } } }));
  await bench.plans.createPlan({ plan: { planId, steps: steps as unknown as Step[] } });
  const { runId } = await bench.runs.startRun({ machineId: id, requestId: "in maintenance", planId });
  const run = await bench.ended(runId);
  expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
  expect(await nodeOf(id)).toMatchObject({ unschedulable: true, cordonedByUs: true });
  expect(await workloadsOf(id)).toEqual([]);
  expect(await phaseOf(id)).toBe("MAINTENANCE");
  await exit(id);
  await uncordoned(id);
});

describe("a run that brings a machine into service", () => {
  const joins = async (machineId: string) => {
    const planId = "plan-joins";
    const kinds = ["join", "verify"] as const;
    const steps = kinds.map((kind) => ({ name: kind, kind: { case: kind, value: {} } })) as unknown as Step[];
    await bench.plans.createPlan({ plan: { planId, steps } });
    const { runId } = await bench.runs.startRun({ machineId, requestId: "joins", planId });
    const run = await bench.ended(runId);
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    expect(await phaseOf(machineId)).toBe("IN_SERVICE");
    return run.steps.map(({ message }) => message);
  };

  test("gives its node back that a run which was cut short had cordoned, though nobody ended the maintenance", async () => {
    const id = await inService();
    const { runId } = await bench.runs.startRun({ machineId: id, requestId: "cordons", type: "UPGRADE" });
    await eventually(async () => (await nodeOf(id))?.unschedulable, { what: `${id} is cordoned` });
    await bench.runs.cancelRun({ runId });
    await bench.ended(runId);
    const said = await joins(id);
    for (const message of said) expect(message).toContain("is still cordoned by Millwright, and uncordoned");
    await uncordoned(id);
    await eventually(() => settled(id), { what: `${id} is at rest` });
    expect(await nodeOf(id)).toMatchObject({ unschedulable: false, cordonedByUs: false });
  });

  test("leaves its node cordoned where somebody else did that, and says so", async () => {
    const id = await inService();
    await cordonByHand(id);
    const said = await joins(id);
    for (const message of said)
      expect(message).toContain(`though not by Millwright, and stays so (kubectl uncordon ${id})`);
    await eventually(() => settled(id), { what: `${id} is at rest` });
    await looks.looked(id, 2);
    expect(await nodeOf(id)).toMatchObject({ unschedulable: true, cordonedByUs: false });
  });
});

test("a cluster that does not answer is waited for, and can be left again", async () => {
  const id = await inService();
  const rule = { device: cluster.name, fault: { type: "status", status: 503 } };
  const { id: fault } = await bench.control<{ id: string }>("POST", "/faults", rule);
  try {
    await enter(id);
    await waitsFor(id, /cluster default-cluster.* 503/);
    expect(await phaseOf(id)).toBe("MAINTENANCE");
    await exit(id);
    expect(await phaseOf(id)).toBe("READY");
    await enter(id);
  } finally {
    await bench.control("DELETE", `/faults/${fault}`);
  }
  await looks.becomes(id, "Drained", true, "NodeDrained");
});

test("a run can start while the node is being drained, and a machine can be retired then", async () => {
  const id = await inService();
  await enter(id);
  await waitsFor(id, /pods? remains?/);
  const { runId } = await bench.runs.startRun({ machineId: id, requestId: "while draining", planId: "plan/reboot" });
  await eventually(async () => (await phaseOf(id)) === "PROVISIONING", { what: `${id} is PROVISIONING` });
  await bench.runs.cancelRun({ runId });
  await bench.ended(runId);

  const other = await inService();
  await enter(other);
  await waitsFor(other, /pods? remains?/);
  await bench.lifecycle.retireMachine({ machineId: other, comment: "" });
  expect(await phaseOf(other)).toBe("RETIRED");
});

test("a machine in no cluster has nothing to drain", async () => {
  const id = "m-rack1-18";
  await looks.becomes(id, "InCustomerCluster", false, "NotJoined");
  await eventually(async () => (await phaseOf(id)) === "READY", { what: `${id} is READY` });
  await enter(id);
  await looks.becomes(id, "Drained", true, "NotInCluster");
  await eventually(async () => (await statusOf(id))?.waitingFor === "", { what: `${id} waits for nothing` });
  await exit(id);
  await looks.becomes(id, "Drained", false, "NotInMaintenance");
});

test("a machine whose owner names another cluster while it serves is drained where it serves", async () => {
  const id = await inService();
  const seenThere = "select 1 from machines where id = $1 and facts ->> 'joinedCluster' = $2";
  await eventually(async () => (await bench.db.query(seenThere, [id, cluster.name])).length > 0, {
    what: `a look that found ${id} at rest has noted where it serves`,
  });
  const { spec } = await bench.machines.getMachine({ machineId: id });
  if (!spec) throw new Error(`${id} has no spec`);
  await bench.machines.updateMachine({ machine: { machineId: id, spec: { ...spec, targetClusterRef: "cluster-a" } } });
  await looks.looked(id, 2);
  expect(await looks.condition(id, "InCustomerCluster")).toMatchObject({ status: true, reason: "NodeReady" });
  await enter(id);
  await looks.becomes(id, "Drained", true, "NodeDrained");
  expect(await nodeOf(id)).toMatchObject({ unschedulable: true, cordonedByUs: true });
});

/** As `kubectl cordon` does it. */
async function cordonByHand(id: string): Promise<void> {
  const client = createKubernetesClient();
  const body = { spec: { unschedulable: true } };
  await client.send(cluster, { method: "PATCH", path: `/api/v1/nodes/${id}`, body }, aCall());
  client.close();
}

/** Nothing is due for the machine. */
async function settled(id: string): Promise<boolean> {
  const [row] = await bench.db.query<{ at_rest: boolean }>(
    "select wake_at > now() + interval '1 second' and lease_until is null as at_rest from work where kind = 'machine' and id = $1",
    [id],
  );
  return row?.at_rest ?? true;
}

import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { MachineStatus_Phase, Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { type PreviewRunResponse, RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
import type { Capability } from "../../../src/capabilities/provider.ts";
import type { JsonObject } from "../../../src/kernel/lifecycle.ts";
import { minutes } from "../../../src/kernel/time/duration.ts";
import type { Machine } from "../../../src/lifecycles/machine/machine.ts";
import { defineFanOut } from "../../../src/runs/children/fan-out.ts";
import { collectSteps } from "../../../src/runs/model/step.ts";
import { allSteps } from "../../../src/runs/steps/index.ts";
import { createCluster } from "../../../src/services/catalog/clusters.ts";
import { createImage } from "../../../src/services/catalog/images.ts";
import * as claims from "../../../src/store/lifecycle/claims/claims.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { wishFor } from "../../support/claims.ts";
import { dumpDatabase } from "../../support/database-dump.ts";
import { type RunBench, type RunSurface, startRunBench, startRunSurface, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { refusal } from "../api/forge-under-test.ts";

/** With nobody who carries runs out, so that whatever changes was changed by the call. */
const CAPABILITIES: Readonly<Record<string, readonly Capability[]>> = {
  datacenter: ["reset", "system", "exec", "boot", "imaging", "cluster", "locator", "power", "inventory", "sensors"],
  ipmi: ["reset", "system"],
};

/** Starts a run on each power shelf of the machine's rack. */
const notifyAll = defineFanOut<Machine, JsonObject>({
  kind: "notify_all",
  parse: (payload) => payload,
  defaults: { timeout: minutes(1) },
  targets: ({ spec }) => ["a", "b"].map((id) => ({ kind: "power_shelf", id: `${spec.rack}-${id}` })),
  stepsOn: () =>
    ["drain", "flash"].map((name) => ({ name, kind: name, timeoutSeconds: 1, maxRetries: 0, payload: {} })),
  atOnce: 1,
});

let surface: RunSurface;
beforeAll(async () => {
  surface = await startRunSurface({
    steps: collectSteps([...allSteps.values(), notifyAll]),
    capabilitiesOf: ({ provider }) => new Set(CAPABILITIES[provider] ?? []),
  });
  const kubeconfig = "apiVersion: v1";
  for (const name of ["default-cluster", "cluster-b"])
    await createCluster(surface.deps, tester, { name, apiUrl: "https://10.0.0.1:6443", kubeconfig });
  await surface.addMachine("m-0");
  await createImage(surface.deps, tester, {
    name: "ubuntu:22.04-k8s",
    kind: "iso",
    location: "https://images.example/ubuntu.iso",
    digest: `sha256:${"a".repeat(64)}`,
    successProof: "",
  });
});
afterAll(() => surface.close());

let count = 0;
const machine = (provider?: string) => surface.addMachine(`m-${++count}`, provider);
interface Asked {
  readonly machineId: string;
  readonly type?: string;
  readonly planId?: string;
  readonly params?: Record<string, string>;
}
const actions = () => surface.client(RunActionsService);

/** Previews, and proves that nothing changed. */
async function preview(asked: Asked): Promise<PreviewRunResponse> {
  const before = await dumpDatabase(surface.db);
  const answer = await actions().previewRun(asked);
  expect(await dumpDatabase(surface.db)).toEqual(before);
  return answer;
}

async function refused(asked: Asked) {
  const before = await dumpDatabase(surface.db);
  const answer = await refusal(actions().previewRun(asked));
  expect(await dumpDatabase(surface.db)).toEqual(before);
  return answer;
}

test("PreviewRun names the cluster that a run would disturb, and a type that contradicts its plan", async () => {
  const machineId = await machine();
  expect(await preview({ machineId, type: "REBOOT" })).toMatchObject({ disturbsCluster: "", warnings: [] });
  const serves = {
    type: "InCustomerCluster",
    status: true,
    reason: "NodeReady",
    message: "",
    last_transition: new Date(),
  };
  await surface.db.execute("update machines set conditions = $2::jsonb where id = $1", [
    machineId,
    JSON.stringify([serves]),
  ]);
  expect(await preview({ machineId, type: "REBOOT" })).toMatchObject({ disturbsCluster: "default-cluster" });
  expect(await preview({ machineId, type: "REPAVE", planId: "plan/reboot" })).toMatchObject({
    disturbsCluster: "default-cluster",
    warnings: ["type REPAVE contradicts plan plan/reboot: the plan has no repave step"],
  });
});

describe("PreviewRun leaves the database as it was, to the byte, and says", () => {
  test.each(["REPAVE", "RMA", "REBOOT", "UPGRADE", "NET_RECONFIG"])(
    "which steps a %s run would consist of: the very ones that StartRun then freezes",
    async (type) => {
      const machineId = await machine();
      const { steps, planId, conflicts, missingCapabilities } = await preview({ machineId, type });
      expect({ conflicts, missingCapabilities }).toEqual({ conflicts: [], missingCapabilities: [] });
      const run = await surface.runs.startRun({ requestId: "r", machineId, type });
      expect(run.planId).toBe(planId);
      expect(steps.map(({ step }) => step)).toEqual(run.plan?.steps);
    },
  );

  test("the cluster that is meant where a step names none, and freezes it: a machine that is given another later joins this one", async () => {
    const machineId = await machine();
    await surface.changeSpec(machineId, { targetClusterRef: "cluster-b" });
    const { steps } = await preview({ machineId, type: "REPAVE" });
    const join = steps.find(({ step }) => step?.kind.case === "join")?.step;
    expect(join?.kind).toMatchObject({ value: { clusterRef: "cluster-b", targetCluster: { clusterId: "cluster-b" } } });
    const { plan } = await surface.runs.startRun({ requestId: "r", machineId, type: "REPAVE" });
    expect(plan?.steps).toEqual(steps.map(({ step }) => step));
  });

  test("what the caller gave for a step, filled in, and freezes it so", async () => {
    const machineId = await machine();
    const asked = { machineId, type: "NET_RECONFIG", params: { rollback_seconds: "30" } };
    const { steps } = await preview(asked);
    expect(steps[0]?.step?.kind).toMatchObject({
      value: { params: { action: "reconfigure", rollback_seconds: "30" } },
    });
    const { plan } = await surface.runs.startRun({ requestId: "r", ...asked });
    expect(plan?.steps).toEqual(steps.map(({ step }) => step));
  });

  test("that a restart is by force where the caller says so, and freezes it so", async () => {
    const machineId = await machine();
    const asked = { machineId, type: "REPAVE", params: { force: "true" } };
    const { steps } = await preview(asked);
    const restart = steps.find(({ step }) => step?.name === "reboot-to-netboot")?.step;
    expect(restart?.kind).toMatchObject({ case: "reboot", value: { force: true } });
    const { plan } = await surface.runs.startRun({ requestId: "r", ...asked });
    expect(plan?.steps).toEqual(steps.map(({ step }) => step));
  });

  test("what each step needs, where the machine reboots, and in which phase success leaves it", async () => {
    const machineId = await machine();
    const answer = await preview({ machineId, type: "REPAVE" });
    expect(answer.steps.map(({ step, needs, reboots }) => [step?.name, needs, reboots])).toEqual([
      ["set-netboot", ["boot"], false],
      ["reboot-to-netboot", ["reset", "system"], true],
      ["repave-image", ["imaging", "system", "exec"], true],
      ["join-cluster", ["exec", "cluster"], false],
      ["verify-in-cluster", ["cluster"], false],
    ]);
    expect(answer).toMatchObject({ reboots: 2, phaseOnSuccess: MachineStatus_Phase.IN_SERVICE });
  });

  test("that a reboot gives the machine the phase back that it had", async () => {
    const machineId = await machine();
    await surface.lifecycle.acceptMachine({ machineId });
    await surface.lifecycle.enterMaintenance({ machineId });
    const { phaseOnSuccess } = await preview({ machineId, type: "REBOOT" });
    expect(phaseOnSuccess).toBe(MachineStatus_Phase.MAINTENANCE);
  });

  test("nothing of how long it takes before such steps were proved", async () => {
    const machineId = await machine();
    const { expectedDuration, steps } = await preview({ machineId, type: "RMA" });
    expect([expectedDuration, ...steps.map((step) => step.expectedDuration)]).toEqual(Array(4).fill(undefined));
  });

  test("which capabilities the machine's provider lacks", async () => {
    const machineId = await machine("ipmi");
    const { missingCapabilities } = await preview({ machineId, type: "REPAVE" });
    expect(missingCapabilities).toEqual(["boot", "imaging", "exec", "cluster"]);
    expect(await refusal(surface.runs.startRun({ requestId: "r", machineId, type: "REPAVE" }))).toMatchObject({
      code: Code.Unimplemented,
    });
  });

  test("that a run of the machine is active", async () => {
    const machineId = await machine();
    const { runId } = await surface.runs.startRun({ requestId: "r", machineId, type: "REBOOT" });
    const { conflicts } = await preview({ machineId, type: "REPAVE" });
    expect(conflicts).toEqual([expect.stringContaining(`has an active run, ${runId}`)]);
  });

  test("that the machine is RETIRED", async () => {
    const machineId = await machine();
    await surface.lifecycle.retireMachine({ machineId });
    const { conflicts } = await preview({ machineId, type: "REBOOT" });
    expect(conflicts).toEqual([expect.stringContaining("RETIRED")]);
  });

  test("who else works on the machine, and that the run would wait for them", async () => {
    const machineId = await machine();
    const thing = { kind: "machine", id: machineId };
    await surface.db.transaction(async (tx) => {
      await lockThings(tx, [thing]);
      await claims.acquire(tx, [wishFor(thing, { kind: "rack", id: "rack-7" }, "maintenance")]);
    });
    const { conflicts } = await preview({ machineId, type: "REBOOT" });
    expect(conflicts).toEqual([expect.stringMatching(/^rack rack-7 \(maintenance\) works on .*PENDING/)]);
    const { phase } = await surface.runs.startRun({ requestId: "r", machineId, type: "REBOOT" });
    expect(phase).toBe(Run_Phase.PENDING);
  });

  test("that the machine to be upgraded was seen to be in no cluster, in the words of StartRun", async () => {
    const machineId = await machine();
    await surface.db.execute("update machines set conditions = $2 where id = $1", [
      machineId,
      JSON.stringify([
        {
          type: "InCustomerCluster",
          status: false,
          reason: "NotJoined",
          message: "cluster default-cluster has no node that is this machine",
          last_transition: "2026-01-01T00:00:00.000Z",
        },
      ]),
    ]);
    const { conflicts } = await preview({ machineId, type: "UPGRADE" });
    const answer = await refusal(surface.runs.startRun({ requestId: "r", machineId, type: "UPGRADE" }));
    expect(answer.code).toBe(Code.FailedPrecondition);
    expect(conflicts).toEqual([answer.message]);
  });

  test("that the machine to be joined is a node of another cluster, in the words of StartRun", async () => {
    const machineId = await machine();
    const there = {
      type: "InCustomerCluster",
      status: true,
      reason: "Joined",
      message: "",
      last_transition: "2026-01-01T00:00:00.000Z",
    };
    await surface.db.execute(
      `update machines set conditions = $2, target_cluster = 'default-cluster', facts = facts || '{"joinedCluster": "cluster-b"}' where id = $1`,
      [machineId, JSON.stringify([there])],
    );
    const { conflicts } = await preview({ machineId, type: "JOIN" });
    const answer = await refusal(surface.runs.startRun({ requestId: "r", machineId, type: "JOIN" }));
    expect(answer).toMatchObject({
      code: Code.FailedPrecondition,
      message: expect.stringContaining(
        "is a node of cluster cluster-b: step join-cluster cannot join it to default-cluster",
      ),
    });
    expect(conflicts[0]).toBe(answer.message);
  });

  test("which steps before a return do without a system that is silent, and which need force", async () => {
    const machineId = await machine();
    const silent = {
      type: "Reachable",
      status: false,
      reason: "Silent",
      message: "",
      last_transition: "2026-01-01T00:00:00.000Z",
    };
    await surface.db.execute("update machines set conditions = $2 where id = $1", [
      machineId,
      JSON.stringify([silent]),
    ]);
    const warnings = async (params: Record<string, string>) =>
      (await preview({ machineId, type: "RMA", params })).warnings;
    expect(await warnings({})).toEqual([
      expect.stringMatching(/step drain-check would wait for it.*params\.force=true leaves out/),
      expect.stringContaining("step graceful-shutdown resets it through its BMC"),
    ]);
    expect((await warnings({ force: "true" }))[0]).toContain("is left out by force=true");
  });

  test("that the node of a machine to be returned is not drained, and what helps", async () => {
    const machineId = await machine();
    const condition = (type: string, status: boolean, reason: string, message: string) => ({
      type,
      status,
      reason,
      message,
      last_transition: "2026-01-01T00:00:00.000Z",
    });
    const put = (...conditions: object[]) =>
      surface.db.execute("update machines set conditions = $2 where id = $1", [machineId, JSON.stringify(conditions)]);
    const inCluster = condition("InCustomerCluster", true, "NodeReady", "node n of c");
    const remain = condition("Drained", false, "PodsRemain", "1 pod remains: d/p");
    await put(inCluster, remain);
    const ask = async (type = "RMA") => (await preview({ machineId, type })).conflicts;
    expect(await ask()).toEqual([
      `machine ${machineId} is not drained (1 pod remains: d/p), so step drain-check would fail; millwright machine enter-maintenance ${machineId}`,
    ]);
    expect(await ask("REBOOT")).toEqual([]);
    await put(inCluster, condition("Drained", false, "NotCordoned", "node n of c"));
    expect((await ask())[0]).toContain("is not drained (node n of c takes work)");
    await put(inCluster, condition("Drained", true, "NodeDrained", ""));
    expect(await ask()).toEqual([]);
    // Without a node there is nothing to drain, whatever the phase.
    await put(condition("InCustomerCluster", false, "NotJoined", ""), remain);
    expect(await ask()).toEqual([]);
  });

  test("that it is not on record where the machine is reached, in the words of StartRun", async () => {
    const machineId = await machine();
    await surface.changeSpec(machineId, { bmcEndpoint: "", sshEndpoint: "" });
    const { conflicts } = await preview({ machineId, type: "REPAVE" });
    const answer = await refusal(surface.runs.startRun({ requestId: "r", machineId, type: "REPAVE" }));
    expect(answer.code).toBe(Code.FailedPrecondition);
    expect(conflicts[0]).toBe(answer.message);
    expect(conflicts.slice(0, 2)).toEqual([
      `machine ${machineId} has no BMC endpoint, which step set-netboot needs`,
      `machine ${machineId} has no SSH endpoint, which step repave-image needs`,
    ]);
  });

  test("every cluster, image and script that is not there, each with its step", async () => {
    const machineId = await machine();
    const planId = "plan-of-unknowns";
    await surface.plans.createPlan({
      plan: {
        planId,
        steps: [
          { name: "pave", kind: { case: "repave", value: { imageRef: "no-image" } } },
          { name: "script", kind: { case: "ssh", value: { scriptRef: "no_script.sh" } } },
          { name: "join", kind: { case: "join", value: { clusterRef: "no-cluster" } } },
        ],
      },
    });
    const { conflicts } = await preview({ machineId, planId });
    expect(conflicts).toEqual([
      expect.stringMatching(/step pave names the image "no-image"/),
      expect.stringMatching(/step script names the script "no_script.sh"/),
      expect.stringMatching(/step join names the cluster "no-cluster"/),
    ]);
  });
});

describe("PreviewRun refuses what StartRun refuses whatever the moment, in the same order and words:", () => {
  test.each<[string, Asked]>([
    ["an empty machine_id, before an unknown type", { machineId: "", type: "DANCE" }],
    ["neither type nor plan", { machineId: "nobody" }],
    ["an unknown type, before an unknown plan", { machineId: "nobody", type: "DANCE", planId: "plan/none" }],
    ["an unknown plan, before an unknown machine", { machineId: "nobody", planId: "plan/none" }],
    ["what is no plan id", { machineId: "nobody", planId: "plan id" }],
    ["an unknown machine", { machineId: "nobody", type: "REBOOT" }],
    [
      "a param that makes no sense for a step",
      { machineId: "m-0", type: "NET_RECONFIG", params: { rollback_seconds: "soon" } },
    ],
    ["a force that is neither true nor false", { machineId: "m-0", type: "REBOOT", params: { force: "yes" } }],
    ["a param that no step takes", { machineId: "m-0", type: "REBOOT", params: { ticket: "T-1" } }],
    ["what is no machine id", { machineId: "no body", type: "REBOOT" }],
  ])("%s", async (_, asked) => {
    const expected = await refusal(surface.runs.startRun({ requestId: "r", ...asked }));
    expect(await refused(asked)).toEqual(expected);
    expect(expected.code).not.toBe(Code.Internal);
  });
});

describe("the expected duration", () => {
  let bench: RunBench;
  beforeAll(async () => {
    bench = await startRunBench();
  });
  afterAll(() => bench.close());

  const expected = async (machineId: string, asked: object) => {
    const answer = await bench.client(RunActionsService).previewRun({ machineId, ...asked });
    return { ...answer, ms: answer.steps.map(({ expectedDuration }) => expectedDuration && msOf(expectedDuration)) };
  };
  const msOf = ({ seconds, nanos }: { seconds: bigint; nanos: number }) => Number(seconds) * 1_000 + nanos / 1e6;

  test("is what such steps took when they were proved, also in another plan, and nothing of what was not", async () => {
    const [first, second] = bench.simulated.map(({ machine_id }) => machine_id);
    const { runId } = await bench.runs.startRun({ requestId: "r", machineId: first ?? "", type: "REBOOT" });
    const run = await bench.ended(runId);
    const [step] = run.steps;
    if (!step?.startedAt || !step.finishedAt) throw new Error("the step has no times");
    const took = msOf(step.finishedAt) - msOf(step.startedAt);

    const again = await expected(second ?? "", { type: "REBOOT" });
    expect(again.ms).toEqual([expect.closeTo(took, 0)]);
    expect(msOf(again.expectedDuration ?? { seconds: 0n, nanos: 0 })).toBeCloseTo(took, 0);

    const other = await expected(second ?? "", { type: "RMA" });
    expect(other.ms).toEqual([undefined, expect.closeTo(took, 0), undefined]);
    expect(other.expectedDuration).toBeUndefined();
  });

  test("is the median, and leaves out steps that were carried over", async () => {
    const [machineId = "", , another = ""] = bench.simulated.map(({ machine_id }) => machine_id);
    await bench.ended((await bench.runs.startRun({ requestId: "r", machineId: another, type: "REBOOT" })).runId);
    const visit = (seconds: number, carriedOver: boolean) => ({
      name: "reboot",
      state: "SUCCEEDED",
      carriedOver,
      startedAt: "2026-01-01T00:00:00.000Z",
      finishedAt: new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)).toISOString(),
    });
    const took = [
      [1_000, false],
      [2_000, false],
      [50_000, false],
      [9_000, true],
    ] as const;
    for (const [index, [seconds, carriedOver]] of took.entries()) {
      await bench.db.execute(
        `insert into runs (id, machine_id, request_id, fingerprint, type, plan_id, plan, params, job_id, initiator, state, facts)
         select $1, machine_id, $1, '', type, plan_id, plan, params, $1, initiator, state, facts || $2
           from runs where state = 'SUCCEEDED' and plan_id = 'plan/reboot' limit 1`,
        [`run-before-${index}`, { steps: [visit(seconds, carriedOver)] }],
      );
    }
    await bench.db.execute("update runs set facts = facts - 'steps' where id not like 'run-before-%'");
    const { ms } = await expected(machineId, { type: "REBOOT" });
    expect(ms).toEqual([2_000_000]);
  });
});

test("the preview shows the runs that a step would start on other things, and starts none", async () => {
  const machineId = await machine("datacenter");
  await surface.changeSpec(machineId, { rack: "rack-7" });
  const step = { name: "tell", kind: "notify_all", timeoutSeconds: 60, maxRetries: 0, payload: {} };
  await surface.db.execute("insert into plans (plan_id, display_name, steps, created_by) values ($1, '', $2, 'test')", [
    "plan/tell",
    JSON.stringify([step]),
  ]);
  const { steps } = await preview({ machineId, planId: "plan/tell" });
  expect(steps.map(({ children }) => children)).toMatchObject([
    [
      { target: { kind: "power_shelf", id: "rack-7-a" }, steps: ["drain", "flash"] },
      { target: { kind: "power_shelf", id: "rack-7-b" }, steps: ["drain", "flash"] },
    ],
  ]);
});

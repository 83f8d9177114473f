import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { MachineStatus_Phase, Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import type { Capability } from "../../../src/capabilities/provider.ts";
import { createCluster } from "../../../src/services/catalog/clusters.ts";
import { createImage } from "../../../src/services/catalog/images.ts";
import { watchRuns } from "../../../src/services/run/watch.ts";
import type { EventSource } from "../../../src/services/system/watch.ts";
import { collect, type RunSurface, startRunSurface, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { refusal } from "../api/forge-under-test.ts";

/** StartRun and its neighbours with nobody who carries runs out, so that each stays where it was put. */
const CAPABILITIES: Readonly<Record<string, readonly Capability[]>> = {
  datacenter: [
    "reset",
    "system",
    "exec",
    "boot",
    "imaging",
    "cluster",
    "locator",
    "power",
    "inventory",
    "sensors",
    "netInstall",
  ],
  ironic: ["reset", "system"],
};

let surface: RunSurface;
beforeAll(async () => {
  surface = await startRunSurface({ capabilitiesOf: ({ provider }) => new Set(CAPABILITIES[provider] ?? []) });
});
afterAll(() => surface.close());

let count = 0;
const machine = (provider?: string) => surface.addMachine(`m-${++count}`, provider);
const start = (request: Parameters<RunSurface["runs"]["startRun"]>[0]) => surface.runs.startRun(request);
const reboot = (machineId: string, requestId = "r") => start({ requestId, machineId, type: "REBOOT" });

describe("StartRun refuses, in this order,", () => {
  test("an empty request_id, before an empty machine_id", async () => {
    expect(await refusal(start({ requestId: "", machineId: "" }))).toMatchObject({
      code: Code.InvalidArgument,
      field: "request_id",
    });
  });

  test.each(["  ", "a\nb", "a\u001b[2J", "r".repeat(129)])(
    "a request_id that nobody can read (%j)",
    async (requestId) => {
      const answer = await refusal(start({ requestId, machineId: "" }));
      expect(answer).toMatchObject({ code: Code.InvalidArgument, field: "request_id" });
      expect(answer.message).toContain("1 to 128 printable characters");
    },
  );

  test("an empty machine_id, before an unknown type", async () => {
    expect(await refusal(start({ requestId: "r", machineId: "", type: "DANCE" }))).toMatchObject({
      code: Code.InvalidArgument,
      field: "machine_id",
    });
  });

  test("a request id that is known with other params, before anything is said of the new type", async () => {
    const machineId = await machine();
    await reboot(machineId);
    expect(await refusal(start({ requestId: "r", machineId, type: "DANCE" }))).toMatchObject({
      code: Code.AlreadyExists,
      field: "request_id",
    });
  });

  test("neither type nor plan", async () => {
    expect(await refusal(start({ requestId: "r", machineId: "nobody" }))).toMatchObject({
      code: Code.InvalidArgument,
      field: "type",
    });
  });

  test("an unknown type, with those that there are, before an unknown plan", async () => {
    const answer = await refusal(start({ requestId: "r", machineId: "nobody", type: "DANCE", planId: "plan/none" }));
    expect(answer).toMatchObject({ code: Code.InvalidArgument, field: "type" });
    expect(answer.message).toContain("REPAVE, RMA, REBOOT, UPGRADE, NET_RECONFIG, JOIN");
  });

  test.each([
    ["too many params", Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`p${at}`, ""])), "params"],
    ["a param that is too long", { why: "x".repeat(16_385) }, "params.why"],
    ["a param with too long a name", { ["x".repeat(129)]: "" }, "params"],
  ])("%s, before an unknown plan", async (_, params, field) => {
    const answer = await refusal(start({ requestId: "r", machineId: "nobody", planId: "plan/none", params }));
    expect(answer).toMatchObject({ code: Code.InvalidArgument, field });
  });

  test("an unknown plan, before an unknown machine", async () => {
    const answer = await refusal(start({ requestId: "r", machineId: "nobody", planId: "plan/none" }));
    expect(answer).toMatchObject({ code: Code.NotFound, field: "plan_id" });
    expect(answer.message).toContain("plan/none");
  });

  test("an unknown machine", async () => {
    const answer = await refusal(reboot("nobody"));
    expect(answer.code).toBe(Code.NotFound);
    expect(answer.message).toContain("machine nobody");
  });

  test.each([
    ["REBOOT", { ticket: "T-1" }, "params.ticket", "no step of plan plan/reboot takes it; they take force"],
    [
      "RMA",
      { ticket: "T-1", tikcet: "T-1" },
      "params.tikcet",
      "no step of plan plan/rma takes it; they take force, ticket",
    ],
    [
      "NET_RECONFIG",
      { version: "1.34.0" },
      "params.version",
      "they take action, netplan, ssh_address, rollback_seconds",
    ],
  ])(
    "a param that no step of a %s takes, with those that they do, and starts nothing",
    async (type, params, field, why) => {
      const machineId = await machine();
      const answer = await refusal(start({ requestId: "r", machineId, type, params }));
      expect(answer).toMatchObject({ code: Code.InvalidArgument, field });
      expect(answer.message).toContain(why);
      expect((await surface.runs.listRuns({ filter: `machine_id=${machineId}` })).runs).toEqual([]);
    },
  );

  test.each(["", "yes", "TRUE", "1"])(
    "a force that is neither true nor false (%j), and starts nothing",
    async (force) => {
      const machineId = await machine();
      const answer = await refusal(start({ requestId: "r", machineId, type: "REPAVE", params: { force } }));
      expect(answer).toMatchObject({ code: Code.InvalidArgument, field: "params.force" });
      expect(answer.message).toMatch(/^params\.force: must be true or false/);
      expect((await surface.runs.listRuns({ filter: `machine_id=${machineId}` })).runs).toEqual([]);
    },
  );

  test.each(["a\nb", "\u001b[2J", "T".repeat(257)])("a ticket that is no line of text (%j)", async (ticket) => {
    const machineId = await machine();
    const answer = await refusal(start({ requestId: "r", machineId, type: "RMA", params: { ticket } }));
    expect(answer).toMatchObject({ code: Code.InvalidArgument, field: "params.ticket" });
    expect(answer.message).toContain("256 printable characters");
  });

  test.each([
    ["a setting that there is not", { mtu: "9000" }, "steps[0].net.params.mtu: is not known"],
    ["a value that makes no sense", { rollback_seconds: "soon" }, "steps[0].net.params.rollback_seconds: must be"],
  ])("a plan of an older server that has %s, and not the params of the caller", async (what, params, why) => {
    const planId = `plan-old-${Object.keys(params)[0]}`;
    const step = { name: "net", kind: "net", timeoutSeconds: 60, maxRetries: 0, payload: { params } };
    await surface.db.execute(
      "insert into plans (plan_id, display_name, steps, created_by) values ($1, $2, $3, 'ann')",
      [planId, what, JSON.stringify([step])],
    );
    const machineId = await machine();
    const answer = await refusal(start({ requestId: "r", machineId, planId, params: { ssh_address: "10.0.0.9" } }));
    expect(answer).toMatchObject({ code: Code.InvalidArgument, field: "plan_id" });
    expect(answer.message).toContain(`plan_id: plan ${planId} is not valid: ${why}`);
    const own = { rollback_seconds: "now" };
    expect(await refusal(start({ requestId: "r", machineId, type: "NET_RECONFIG", params: own }))).toMatchObject({
      code: Code.InvalidArgument,
      field: "params.rollback_seconds",
    });
  });

  test("a RETIRED machine, before what its provider cannot do", async () => {
    const machineId = await machine("fake");
    await surface.lifecycle.retireMachine({ machineId });
    const answer = await refusal(reboot(machineId));
    expect(answer.code).toBe(Code.FailedPrecondition);
    expect(answer.message).toContain("RETIRED");
  });

  test("a machine with an active run, named, before what its provider cannot do", async () => {
    const machineId = await machine("ironic");
    const { runId } = await reboot(machineId);
    const answer = await refusal(start({ requestId: "other", machineId, type: "REPAVE" }));
    expect(answer.code).toBe(Code.FailedPrecondition);
    expect(answer.message).toContain(runId);
  });

  test("a provider that lacks a capability, with step and capability", async () => {
    const machineId = await machine("ironic");
    const answer = await refusal(start({ requestId: "r", machineId, type: "REPAVE" }));
    expect(answer.code).toBe(Code.Unimplemented);
    expect(answer.message).toMatch(/step \S+ needs .*, which provider ironic cannot do/);
  });

  test.each([
    ["bmc", "BMC", "step reboot needs", { type: "REBOOT" }],
    ["bmc", "BMC", "step set-netboot needs", { type: "REPAVE" }],
    ["ssh", "SSH", "step repave-image needs", { type: "REPAVE" }],
    ["ssh", "SSH", "needs", { type: "NET_RECONFIG" }],
  ])(
    "a machine without an endpoint (%s) that a step needs, before what is not there",
    async (word, name, why, asked) => {
      const machineId = await machine();
      await surface.changeSpec(machineId, { [`${word}Endpoint`]: "" });
      const answer = await refusal(start({ requestId: "r", machineId, ...asked }));
      expect(answer).toMatchObject({
        code: Code.FailedPrecondition,
        field: "machine_id",
        next: `millwright machine update ${machineId} --${word}-endpoint <host>`,
      });
      expect(answer.message).toContain(`machine ${machineId} has no ${name} endpoint, which `);
      expect(answer.message).toContain(why);
      expect((await surface.runs.listRuns({ filter: `machine_id=${machineId}` })).runs).toEqual([]);
    },
  );

  test("a machine without a BMC only where a step needs it, and without SSH not where the installer proves the installation", async () => {
    const machineId = await machine();
    await surface.changeSpec(machineId, { bmcEndpoint: "" });
    await surface.plans.createPlan({
      plan: {
        planId: "plan-without-bmc",
        steps: [{ name: "in", kind: { case: "reboot", value: { mode: "in_band" } } }],
      },
    });
    await expect(start({ requestId: "r", machineId, planId: "plan-without-bmc" })).resolves.toMatchObject({
      machineId,
    });

    const location = "wf-of-token-image";
    await surface.db.execute(
      "insert into images (name, kind, location, digest, success_proof, created_by) values ($1, 'netboot', $1, $2, 'token', 'ann'), ($3, 'netboot', $1, $2, 'ssh', 'ann')",
      [location, `sha256:${"1".repeat(64)}`, `${location}-by-ssh`],
    );
    for (const [planId, imageRef] of [
      ["plan-by-token", location],
      ["plan-by-ssh", `${location}-by-ssh`],
    ] as const)
      await surface.plans.createPlan({
        plan: { planId, steps: [{ name: "pave", kind: { case: "repave", value: { imageRef } } }] },
      });
    const withoutSsh = await machine();
    await surface.changeSpec(withoutSsh, { sshEndpoint: "" });
    const answer = await refusal(start({ requestId: "r", machineId: withoutSsh, planId: "plan-by-ssh" }));
    expect(answer.message).toContain("has no SSH endpoint, which step pave needs");
    const started = start({ requestId: "r", machineId: withoutSsh, planId: "plan-by-token" });
    await expect(started).resolves.toMatchObject({ machineId: withoutSsh });
  });

  test.each([
    ["an image", { name: "install", kind: { case: "repave", value: { imageRef: "no-such" } } }, "image"],
    ["a cluster", { name: "check", kind: { case: "verify", value: { clusterRef: "no-such" } } }, "cluster"],
    ["a script", { name: "say", kind: { case: "ssh", value: { scriptRef: "no-such" } } }, "script"],
  ] as const)("%s that is not there, with the step that names it", async (_, step, kind) => {
    const machineId = await machine();
    const planId = `plan-with-unknown-${kind}`;
    await surface.plans.createPlan({ plan: { planId, steps: [step] } });
    const answer = await refusal(start({ requestId: "r", machineId, planId }));
    expect(answer).toMatchObject({ code: Code.InvalidArgument, field: "plan_id" });
    expect(answer.message).toContain(`step ${step.name} names the ${kind} "no-such"`);
    expect((await surface.runs.listRuns({ filter: `machine_id=${machineId}` })).runs).toEqual([]);
  });
});

describe("StartRun refuses what would only fail at its end:", () => {
  const created = async (planId: string, clusterRef: string) => {
    const step = { name: "join", kind: { case: "join", value: { clusterRef } } } as const;
    await surface.plans.createPlan({ plan: { planId, steps: [step] } });
    return planId;
  };

  test("a plan that leaves the cluster open, on a machine that has none, with the field and the command for it", async () => {
    const machineId = await machine();
    const planId = await created("plan-of-an-open-cluster", "");
    const answer = await refusal(start({ requestId: "r", machineId, planId }));
    expect(answer).toMatchObject({
      code: Code.FailedPrecondition,
      next: `millwright machine update ${machineId} --cluster <name>`,
    });
    expect(answer.message).toContain("give it spec.target_cluster_ref");
  });

  test("but not for want of the machine's own cluster when the plan names another that is not there", async () => {
    const planId = await created("plan-of-a-named-cluster", "default-cluster");
    const answer = await refusal(start({ requestId: "r", machineId: await machine(), planId }));
    expect(answer).toMatchObject({ code: Code.InvalidArgument, field: "plan_id" });
  });

  const inCluster = (status: boolean) =>
    surface.db.execute("update machines set conditions = $2 where id = $1", [
      `m-${count}`,
      JSON.stringify([
        {
          type: "InCustomerCluster",
          status,
          reason: status ? "NodeReady" : "NotJoined",
          message: status ? "" : "cluster cluster-of-nodes has no node that is this machine",
          last_transition: "2026-01-01T00:00:00.000Z",
        },
      ]),
    ]);

  test("an upgrade of a machine that was seen to be in no cluster, and of no other", async () => {
    await createCluster(surface.deps, tester, {
      name: "cluster-of-nodes",
      apiUrl: "https://k8s.example",
      kubeconfig: "apiVersion: v1",
    });
    const machineId = await machine();
    await surface.changeSpec(machineId, { targetClusterRef: "cluster-of-nodes" });
    await inCluster(false);
    for (const asked of [{ type: "UPGRADE" }, { planId: "plan/upgrade" }]) {
      const answer = await refusal(start({ requestId: "r", machineId, ...asked }));
      expect(answer).toMatchObject({
        code: Code.FailedPrecondition,
        next: `millwright machine update ${machineId} --cluster <name>`,
      });
      expect(answer.message).toMatch(
        /not in cluster cluster-of-nodes .*no node that is this machine.*spec\.target_cluster_ref/,
      );
    }
    await inCluster(true);
    await expect(start({ requestId: "r", machineId, type: "UPGRADE" })).resolves.toMatchObject({ machineId });
    const unseen = await machine();
    await surface.changeSpec(unseen, { targetClusterRef: "cluster-of-nodes" });
    await expect(start({ requestId: "r", machineId: unseen, type: "UPGRADE" })).resolves.toMatchObject({
      type: "UPGRADE",
    });
  });
});

describe("a machine whose owner names no cluster, but which was joined to one,", () => {
  const joinedTo = async (name: string) => {
    const machineId = await machine();
    await surface.db.execute("update machines set facts = $2 where id = $1", [
      machineId,
      JSON.stringify({ joinedCluster: name }),
    ]);
    return machineId;
  };

  test("is upgraded, and verified, there", async () => {
    await createCluster(surface.deps, tester, {
      name: "cluster-that-it-is-in",
      apiUrl: "https://k8s.example",
      kubeconfig: "apiVersion: v1",
    });
    const { runId } = await start({
      requestId: "r",
      machineId: await joinedTo("cluster-that-it-is-in"),
      type: "UPGRADE",
    });
    const [run] = await surface.db.query<{ plan: { steps: { payload: { cluster_ref?: string } }[] } }>(
      "select plan from runs where id = $1",
      [runId],
    );
    expect(run?.plan.steps.at(-1)?.payload.cluster_ref).toBe("cluster-that-it-is-in");
  });

  test("is not said to have none when that one is not on record any more", async () => {
    const answer = await refusal(
      start({ requestId: "r", machineId: await joinedTo("cluster-that-is-gone"), type: "UPGRADE" }),
    );
    expect(answer).toMatchObject({ code: Code.InvalidArgument, field: "plan_id" });
    expect(answer.message).toContain('names the cluster "cluster-that-is-gone", which is not there');
  });
});

describe("StartRun", () => {
  test("returns a PENDING run at once, which is the machine's active one", async () => {
    const machineId = await machine();
    const run = await start({ requestId: "r", machineId, type: "rma", params: { ticket: "T-1" } });
    expect(run).toMatchObject({
      machineId,
      requestId: "r",
      type: "RMA",
      planId: "plan/rma",
      phase: Run_Phase.PENDING,
      params: { ticket: "T-1" },
      steps: [],
      currentStep: "",
      attempt: 1,
    });
    const { machines } = await surface.machines.listMachines({ filter: "effective_state=PROVISIONING" });
    expect(machines.find((one) => one.machineId === machineId)?.status).toMatchObject({
      activeRunId: run.runId,
      effectiveState: MachineStatus_Phase.PROVISIONING,
    });
  });

  test("takes a plan instead of a type, and freezes it into the run", async () => {
    const machineId = await machine();
    const planId = "plan-to-freeze";
    const plan = {
      planId,
      displayName: "One",
      steps: [{ name: "boot", kind: { case: "reboot", value: {} } }],
    } as const;
    await surface.plans.createPlan({ plan: { ...plan, steps: [...plan.steps] } });
    const { runId } = await start({ requestId: "r", machineId, planId });
    await surface.db.execute("update plans set steps = '[]' where plan_id = $1", [planId]);
    const run = await surface.runs.getRun({ runId });
    expect(run).toMatchObject({ planId, type: "", plan: { displayName: "One", steps: [{ name: "boot" }] } });
  });

  test("freezes the digests of the scripts that the plan names", async () => {
    const machineId = await machine();
    await surface.plans.createPlan({
      plan: {
        planId: "plan-of-a-script",
        steps: [{ name: "drain", kind: { case: "ssh", value: { scriptRef: "drain_check.sh" } } }],
      },
    });
    const { runId } = await start({ requestId: "r", machineId, planId: "plan-of-a-script" });
    const [row] = await surface.db.query<{ facts: object }>("select facts from runs where id = $1", [runId]);
    expect(row?.facts).toEqual({ scripts: { "drain_check.sh": expect.stringMatching(/^sha256:[0-9a-f]{64}$/) } });
  });

  test("lets an empty cluster be the machine's own", async () => {
    const machineId = await machine();
    await surface.changeSpec(machineId, { targetClusterRef: "cluster-of-its-own" });
    await createImage(surface.deps, tester, {
      name: "ubuntu:22.04-k8s",
      kind: "iso",
      location: "https://images.example/k8s.iso",
      digest: `sha256:${"0".repeat(64)}`,
      successProof: "",
    });
    const answer = await refusal(start({ requestId: "r", machineId, type: "REPAVE" }));
    expect(answer.message).toContain(`step join-cluster names the cluster "cluster-of-its-own"`);
    await createCluster(surface.deps, tester, {
      name: "cluster-of-its-own",
      apiUrl: "https://k8s.example",
      kubeconfig: "apiVersion: v1",
    });
    await expect(start({ requestId: "r", machineId, type: "REPAVE" })).resolves.toMatchObject({ machineId });
  });
});

describe("the same request again", () => {
  test("returns the same run", async () => {
    const machineId = await machine();
    const params = { action: "reconfigure", rollback_seconds: "30" };
    const { runId } = await start({ requestId: "again", machineId, type: "NET_RECONFIG", params });
    const otherwise = { rollback_seconds: "30", action: "reconfigure" };
    const again = await start({ requestId: "again", machineId, type: "NET_RECONFIG", params: otherwise });
    expect(again.runId).toBe(runId);
  });

  test("returns the same run in whatever spelling its type is asked for", async () => {
    const machineId = await machine();
    const ask = (type: string) => start({ requestId: "spelled", machineId, type });
    const { runId } = await ask("NET_RECONFIG");
    for (const type of ["net_reconfig", "net-reconfig", "Net-Reconfig"]) expect((await ask(type)).runId).toBe(runId);
  });

  test("returns the same run also after it has ended", async () => {
    const machineId = await machine();
    const { runId } = await reboot(machineId);
    await end(runId);
    expect(await reboot(machineId)).toMatchObject({ runId, phase: Run_Phase.SUCCEEDED });
  });

  test("returns the same run also when the machine is RETIRED since", async () => {
    const machineId = await machine();
    const { runId } = await reboot(machineId);
    await end(runId);
    await surface.lifecycle.retireMachine({ machineId });
    expect((await reboot(machineId)).runId).toBe(runId);
  });

  test.each([
    ["type", { type: "RMA" }],
    ["plan", { planId: "plan/rma" }],
    ["params", { params: { other: "1" } }],
  ])("with another %s is ALREADY_EXISTS, and names the run", async (_, change) => {
    const machineId = await machine();
    const { runId } = await reboot(machineId);
    const answer = await refusal(start({ requestId: "r", machineId, type: "REBOOT", ...change }));
    expect(answer.code).toBe(Code.AlreadyExists);
    expect(answer.message).toContain(runId);
  });

  test("for another machine is another request", async () => {
    const [one, two] = [await machine(), await machine()];
    expect((await reboot(one)).runId).not.toBe((await reboot(two)).runId);
  });
});

describe("50 at once", { tags: "race" }, () => {
  const fifty = Array.from({ length: 50 }, (_, index) => index);

  test("with one request id start one run", async () => {
    const machineId = await machine();
    const runs = await Promise.all(fifty.map(() => reboot(machineId)));
    expect(new Set(runs.map(({ runId }) => runId)).size).toBe(1);
    expect((await surface.runs.listRuns({ filter: `machine_id=${machineId}` })).runs).toHaveLength(1);
  });

  test("with 50 request ids start one run, and 49 are FAILED_PRECONDITION", async () => {
    const machineId = await machine();
    const outcomes = await Promise.all(
      fifty.map((index) =>
        reboot(machineId, `request-${index}`).then(
          () => "started",
          async (error) => (await refusal(Promise.reject(error))).code,
        ),
      ),
    );
    expect(outcomes.filter((outcome) => outcome === "started")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === Code.FailedPrecondition)).toHaveLength(49);
  });

  test("on 50 machines start 50 runs, whatever is wrong with others that come along", async () => {
    const machines = await Promise.all(fifty.map(() => machine()));
    const [unknownMachine, unknownPlan, ...runs] = await Promise.all([
      refusal(reboot("m-nobody-knows")),
      refusal(start({ requestId: "odd", machineId: machines[0] as string, planId: "plan/nobody-knows" })),
      ...machines.map((machineId) => reboot(machineId)),
    ]);
    expect(unknownMachine).toMatchObject({ code: Code.NotFound });
    expect(unknownPlan).toMatchObject({ code: Code.NotFound, field: "plan_id" });
    expect(runs.map(({ machineId }) => machineId)).toEqual(machines);
    expect(new Set(runs.map(({ runId }) => runId)).size).toBe(50);
  });
});

describe("lists of runs", () => {
  test("are filtered, newest first, and paged without gap or repeat", async () => {
    const machineId = await machine();
    const ids: string[] = [];
    for (const index of [1, 2, 3, 4, 5]) {
      const { runId } = await reboot(machineId, `request-${index}`);
      await end(runId, index % 2 === 0 ? "FAILED" : "SUCCEEDED");
      ids.unshift(runId);
    }
    const list = async (filter: string, pageSize = 0, pageToken = "") =>
      surface.runs.listRuns({ filter, pageSize, pageToken });
    const all = await list(`machine_id=${machineId}`);
    expect(all.runs.map(({ runId }) => runId)).toEqual(ids);
    const paged: string[] = [];
    for (let token = ""; ; ) {
      const page = await list(`machine_id=${machineId}`, 2, token);
      paged.push(...page.runs.map(({ runId }) => runId));
      token = page.nextPageToken;
      if (token === "") break;
      expect(page.runs).toHaveLength(2);
    }
    expect(paged).toEqual(ids);
    const failed = await list(`machine_id=${machineId} AND phase=FAILED`);
    expect(failed.runs.map(({ requestId }) => requestId)).toEqual(["request-4", "request-2"]);
    expect((await list(`machine_id=${machineId} AND request_id IN (request-1, request-5)`)).runs).toHaveLength(2);
    expect((await list(`machine_id=${machineId} AND type!=REBOOT`)).runs).toEqual([]);
  });

  test("refuse a filter that makes no sense, and a page token of another filter", async () => {
    expect(await refusal(surface.runs.listRuns({ filter: "colour=red" }))).toMatchObject({
      code: Code.InvalidArgument,
    });
    for (const machineId of [await surface.addMachine("m-on-page-1"), await surface.addMachine("m-on-page-2")])
      await surface.runs.startRun({ requestId: "r", machineId, type: "REBOOT" });
    const { nextPageToken } = await surface.runs.listRuns({ pageSize: 1 });
    expect(nextPageToken).not.toBe("");
    expect(
      await refusal(surface.runs.listRuns({ filter: "phase=FAILED", pageSize: 1, pageToken: nextPageToken })),
    ).toMatchObject({ code: Code.InvalidArgument });
  });
});

describe("CancelRun", () => {
  test("of an unknown run is NOT_FOUND, and so are GetRun and StreamRunLogs", async () => {
    const runId = "run-nobody";
    for (const call of [
      () => surface.runs.cancelRun({ runId }),
      () => surface.runs.getRun({ runId }),
      () => collect(surface.runs.streamRunLogs({ runId })),
    ]) {
      expect((await refusal(call())).code).toBe(Code.NotFound);
    }
  });

  test.each(["SUCCEEDED", "FAILED"])("of a run that has %s is FAILED_PRECONDITION", async (state) => {
    const { runId } = await reboot(await machine());
    await end(runId, state);
    const answer = await refusal(surface.runs.cancelRun({ runId }));
    expect(answer.code).toBe(Code.FailedPrecondition);
    expect(answer.message).toContain(state);
  });

  test("can be repeated, and is recorded once", async () => {
    const { runId } = await reboot(await machine());
    const first = await surface.runs.cancelRun({ runId });
    const again = await surface.runs.cancelRun({ runId });
    expect(first.cancelRequestedAt).toBeDefined();
    expect(again.cancelRequestedAt).toEqual(first.cancelRequestedAt);
    const events = await surface.db.query("select 1 from journal where id = $1 and type = 'cancel_requested'", [runId]);
    expect(events).toHaveLength(1);
  });

  test("of a CANCELED run succeeds", async () => {
    const { runId } = await reboot(await machine());
    await end(runId, "CANCELED");
    expect(await surface.runs.cancelRun({ runId })).toMatchObject({ phase: Run_Phase.CANCELED });
  });
});

test("no run_id at all is INVALID_ARGUMENT, since no run is gone", async () => {
  for (const call of [
    () => surface.runs.cancelRun({}),
    () => surface.runs.getRun({}),
    () => collect(surface.runs.streamRunLogs({})),
  ])
    expect(await refusal(call())).toMatchObject({ code: Code.InvalidArgument, field: "run_id" });
});

test.each([-1n, -9_223_372_036_854_775_808n])("the log after chunk %s is refused", async (after) => {
  const { runId } = await reboot(await machine());
  expect(await refusal(collect(surface.runs.streamRunLogs({ runId, after, noFollow: true })))).toMatchObject({
    code: Code.InvalidArgument,
    field: "after",
  });
});

test("the log after a chunk that can never be has nothing in it", async () => {
  const { runId } = await reboot(await machine());
  const after = 9_223_372_036_854_775_807n;
  expect(await collect(surface.runs.streamRunLogs({ runId, after, noFollow: true }))).toEqual([]);
});

describe("WatchRuns", () => {
  test("sends each active run once, however long nothing happens", async () => {
    const machineId = await machine();
    const { runId } = await reboot(machineId);
    const events: EventSource = {
      async *follow() {
        for (const cursor of ["1.1.1", "1.1.2", "1.1.3"]) yield { type: "bookmark", cursor };
      },
    };
    const query = { filter: `machine_id=${machineId}`, cursor: "" };
    const sent = await collect(watchRuns(surface.deps, events, query, new AbortController().signal));
    expect(sent.map(({ run, cursor }) => [run.id, cursor])).toEqual([[runId, "1.1.1"]]);
  });

  test("sends every active run once also when there are more than a page of them, of the same moment too", async () => {
    const { runId } = await reboot(await machine());
    await surface.db.execute(
      `insert into runs (id, machine_id, request_id, fingerprint, type, plan_id, plan, job_id, initiator, state, created_at)
       select 'run-many-' || i, 'many-' || i, 'r', '', type, 'plan-many', plan, 'job-many-' || i, initiator, 'PENDING',
              now() - (i / 100) * interval '1 second'
         from runs, generate_series(1, 450) as i where id = $1`,
      [runId],
    );
    const events: EventSource = {
      async *follow() {
        yield { type: "bookmark", cursor: "1.1.1" };
      },
    };
    const query = { filter: "plan_id=plan-many", cursor: "" };
    const sent = await collect(watchRuns(surface.deps, events, query, new AbortController().signal));
    await surface.db.execute("delete from runs where plan_id = 'plan-many'");
    expect(sent).toHaveLength(450);
    expect(new Set(sent.map(({ run }) => run.id)).size).toBe(450);
  });

  test("refuses a filter and a cursor that make no sense", async () => {
    for (const request of [{ filter: "colour=red" }, { cursor: "yesterday" }]) {
      const first = surface.runs.watchRuns(request)[Symbol.asyncIterator]().next();
      expect((await refusal(first)).code).toBe(Code.InvalidArgument);
    }
  });
});

/** Ends a run that nobody carries out. */
async function end(runId: string, state = "SUCCEEDED"): Promise<void> {
  await surface.db.execute("update runs set state = $2 where id = $1", [runId, state]);
}

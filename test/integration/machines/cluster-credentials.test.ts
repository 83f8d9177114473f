import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Run_Phase, type Step } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { ClusterService } from "../../../contract/millwright/v1/cluster_pb.js";
import { HistoryService } from "../../../contract/millwright/v1/history_pb.js";
import { RunService as AllRunsService, RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
import { getKubeconfigs } from "../../../src/store/catalog/clusters.ts";
import { CERTIFICATE } from "../../support/counterparts/client-certificate.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunBench, startRunBench } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { refusal } from "../api/forge-under-test.ts";

let bench: RunBench;
let good: string;
beforeAll(async () => {
  bench = await startRunBench();
  const [known] = await bench.control<{ kubeconfig: string }[]>("GET", "/clusters");
  good = known?.kubeconfig ?? "";
});
afterAll(() => bench.close());

const clusters = () => bench.client(ClusterService);
const withToken = (token: string) => good.replace(/token: \S+/, `token: ${token}`);
const withServer = (server: string) => good.replace(/server: \S+/, `server: ${server}`);
const recordOf = async (name: string) => (await getKubeconfigs(bench.db, bench.deps.secrets, [name])).get(name);
const CLUSTER = "default-cluster";
const give = (kubeconfig: string) => clusters().updateCluster({ name: CLUSTER, kubeconfig, skipProbe: true });

describe("a kubeconfig", () => {
  test("that the cluster accepts is recorded with the server that it names", async () => {
    const { cluster, warnings } = await clusters().createCluster({ name: "one", kubeconfig: good });
    expect(cluster?.apiUrl).toBe(/server: (\S+)/.exec(good)?.[1]);
    expect(warnings).toEqual([]);
    expect(await recordOf("one")).toBe(good);
  });

  test.each([
    ["that the cluster refuses", () => withToken("wrong"), "was answered with status 401"],
    [
      "of another authority",
      () =>
        good.replace(
          /certificate-authority-data: \S+/,
          `certificate-authority-data: ${Buffer.from(CERTIFICATE).toString("base64")}`,
        ),
      "does not trust",
    ],
    ["that leads to nobody", () => withServer("https://127.0.0.1:1"), "--skip-probe records it all the same"],
  ])("%s is not recorded, and does not replace the one that is", async (_, kubeconfig, words) => {
    for (const call of [
      clusters().createCluster({ name: "two", kubeconfig: kubeconfig() }),
      clusters().updateCluster({ name: CLUSTER, kubeconfig: kubeconfig() }),
    ]) {
      const refused = await refusal(call);
      expect(refused).toMatchObject({ code: Code.FailedPrecondition, field: "kubeconfig" });
      expect(refused.message).toContain(words);
    }
    expect(await recordOf("two")).toBeUndefined();
    expect(await recordOf(CLUSTER)).toBe(good);
  });

  test("with a member that is not honoured is refused by its name, and so is another address beside it", async () => {
    const proxied = good.replace(/server: /, "proxy-url: http://proxy\n      server: ");
    const member = await refusal(clusters().createCluster({ name: "two", kubeconfig: proxied }));
    expect(member).toMatchObject({ code: Code.InvalidArgument, field: "kubeconfig.clusters.cluster.proxy-url" });
    const address = { name: "two", kubeconfig: good, apiUrl: "https://10.0.0.1:6443" };
    expect(await refusal(clusters().createCluster(address))).toMatchObject({
      code: Code.InvalidArgument,
      field: "api_url",
    });
    expect(await recordOf("two")).toBeUndefined();
  });

  test("replaces the one on record, and the journal tells by whom and not what", async () => {
    const other = withToken("other");
    await clusters().createCluster({ name: "three", kubeconfig: good });
    await clusters().updateCluster({ name: "three", kubeconfig: other, skipProbe: true });
    expect(await recordOf("three")).toBe(other);
    const { events } = await bench.client(HistoryService).listHistory({ kind: "cluster", id: "three" });
    expect(events.map(({ type }) => type)).toEqual(["created", "changed"]);
    expect(JSON.stringify(events, (_, value) => (typeof value === "bigint" ? Number(value) : value))).not.toContain(
      "other\n",
    );
    expect((await refusal(clusters().updateCluster({ name: "none", kubeconfig: good }))).code).toBe(Code.NotFound);
  });

  test("of what may be another cluster is taken only by the caller who says so", async () => {
    const other = withServer("https://127.0.0.1:1").replace(
      /certificate-authority-data: \S+/,
      `certificate-authority-data: ${Buffer.from(CERTIFICATE).toString("base64")}`,
    );
    await clusters().createCluster({ name: "four", kubeconfig: good });
    const request = { name: "four", kubeconfig: other, skipProbe: true };
    expect((await refusal(clusters().updateCluster(request))).message).toContain("--other-cluster");
    expect(await recordOf("four")).toBe(good);
    await clusters().updateCluster({ ...request, otherCluster: true });
    expect(await recordOf("four")).toBe(other);
  });

  test("without an authority is not taken for the same cluster at another server", async () => {
    const plain = (server: string) => withServer(server).replace(/ *certificate-authority-data: \S+\n/, "");
    const known = plain("https://127.0.0.1:1");
    expect(known).not.toContain("certificate-authority");
    await clusters().createCluster({ name: "five", kubeconfig: known, skipProbe: true });
    const request = { name: "five", kubeconfig: plain("https://127.0.0.1:2"), skipProbe: true };
    expect((await refusal(clusters().updateCluster(request))).message).toContain("--other-cluster");
    expect(await recordOf("five")).toBe(known);
    await clusters().updateCluster({ ...request, otherCluster: true });
    expect(await recordOf("five")).toBe(request.kubeconfig);
  });
});

describe("a run that joins a cluster which does not let us in", () => {
  const start = (machineId: string, requestId: string, planId = "") =>
    bench.runs.startRun({ machineId, requestId, type: "REPAVE", planId });

  test("is refused before the disk is touched; the preview says so; a new kubeconfig is all that it takes", async () => {
    const machineId = "m-rack1-01";
    const before = (await bench.truth(machineId)).os;
    await give(withToken("expired"));
    const refused = await refusal(start(machineId, "too early"));
    expect(refused).toMatchObject({
      code: Code.FailedPrecondition,
      next: `millwright cluster update ${CLUSTER} --kubeconfig <file>`,
    });
    expect(refused.message).toMatch(/step join-cluster cannot use cluster default-cluster: .* status 401/);
    const preview = await bench.client(RunActionsService).previewRun({ machineId, type: "REPAVE" });
    expect(preview.conflicts.join("\n")).toContain("status 401");
    expect((await bench.truth(machineId)).os).toEqual(before);
    await clusters().updateCluster({ name: CLUSTER, kubeconfig: good });
    const { runId } = await start(machineId, "in time");
    // Who repeats a start hears of the run, however the cluster is by then.
    await give(withToken("expired"));
    expect((await start(machineId, "in time")).runId).toBe(runId);
    await give(good);
    const run = await bench.ended(runId);
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
  });

  test("is refused as a part of many as well, and nothing of the machine is touched", async () => {
    const machineId = "m-rack1-04";
    const before = (await bench.truth(machineId)).os;
    await give(withToken("expired"));
    const asked = { requestId: "many", filter: `machine_id=${machineId}`, type: "REPAVE" };
    const { run } = await bench.client(RunActionsService).startRuns(asked);
    const runId = run?.run?.runId ?? "";
    const all = bench.client(AllRunsService);
    const record = await eventually(
      async () => {
        const { run: shown } = await all.getRun({ runId });
        return (shown?.children.length ?? 0) > 0 || (shown?.run?.phase ?? 0) > Run_Phase.RUNNING ? shown : undefined;
      },
      { what: "it has ended, or started a run", within: 20_000 },
    );
    expect(record?.children).toEqual([]);
    expect(record?.run?.phase).toBe(Run_Phase.FAILED);
    expect(record?.run?.message).toMatch(/refused: m-rack1-04 \(step join-cluster cannot use .* status 401/);
    expect((await bench.truth(machineId)).os).toEqual(before);
    await give(good);
  });

  test("is refused as a further attempt, unless that has nothing left to do there", async () => {
    const machineId = "m-rack1-05";
    await give(good);
    const steps = [
      { name: "node", kind: { case: "verify", value: {} } },
      { name: "reboot", kind: { case: "reboot", value: {} } },
    ] as unknown as Step[];
    await bench.plans.createPlan({ plan: { planId: "verify-first", steps } });
    await bench.control("POST", `/devices/${machineId}/join`, { cluster: CLUSTER });
    await bench.control("GET", "/clusters");
    const { runId } = await start(machineId, "first", "verify-first");
    const first = await bench.ended(runId);
    expect(first.phase, first.error?.message).toBe(Run_Phase.SUCCEEDED);
    await bench.db.execute(
      `update runs set state = 'FAILED', facts = jsonb_set(facts, '{steps,1,state}', '"FAILED"') where id = $1`,
      [runId],
    );
    await give(withToken("expired"));
    const actions = bench.client(RunActionsService);
    for (const again of [actions.rerunRun, actions.restartRunClean]) {
      const refused = await refusal(again({ runId, requestId: "again" }));
      expect(refused).toMatchObject({
        code: Code.FailedPrecondition,
        next: `millwright cluster update ${CLUSTER} --kubeconfig <file>`,
      });
      expect(refused.message).toMatch(/step node cannot use cluster default-cluster: .* status 401/);
    }
    const { run } = await actions.retryRun({ runId, requestId: "again" });
    expect((await bench.ended(run?.runId ?? "")).phase).toBe(Run_Phase.SUCCEEDED);
    await give(good);
  });

  test("waits for a cluster that does not answer, and the preview says so", async () => {
    const machineId = "m-rack1-02";
    // Another text, so that what was found a moment ago does not count.
    await give(`${good}# again\n`);
    await bench.fault({ device: CLUSTER, fault: { type: "status", status: 503 } });
    try {
      const preview = await bench.client(RunActionsService).previewRun({ machineId, type: "REPAVE" });
      expect(preview.conflicts.join("\n")).toMatch(/step join-cluster would wait for its cluster: .* 503/);
      const steps = [{ name: "verify", kind: { case: "verify", value: {} } }] as unknown as Step[];
      await bench.plans.createPlan({ plan: { planId: "only-verify", steps } });
      const { runId } = await start(machineId, "waits", "only-verify");
      await bench.runs.cancelRun({ runId });
      await bench.ended(runId);
    } finally {
      await bench.control("DELETE", "/faults");
    }
  });
});

test("a repave into another cluster tells of the node that it leaves in the first one", async () => {
  const machineId = "m-rack1-03";
  await bench.control("POST", `/devices/${machineId}/join`, { cluster: CLUSTER });
  // A node is there once somebody looks at the cluster.
  await bench.control("GET", "/clusters");
  await bench.db.execute(
    `update machines set facts = facts || '{"joinedCluster": "default-cluster"}', basis = basis + 1 where id = $1`,
    [machineId],
  );
  await bench.changeSpec(machineId, { targetClusterRef: "cluster-a" });
  const { runId } = await bench.runs.startRun({ machineId, requestId: "moves", type: "REPAVE" });
  const run = await bench.ended(runId);
  expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
  expect(run.steps.find(({ name }) => name === "join-cluster")?.message).toContain(
    `node ${machineId} of default-cluster is left over from before: delete it there (kubectl delete node ${machineId})`,
  );
});

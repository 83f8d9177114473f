import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { MachineStatus_Phase, Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { ClusterService } from "../../../contract/millwright/v1/cluster_pb.js";
import { ExplainService } from "../../../contract/millwright/v1/explain_pb.js";
import type { ClusterTarget } from "../../../src/capabilities/cluster-target.ts";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { seconds } from "../../../src/kernel/time/duration.ts";
import { createKubernetesClient, type KubernetesRequest } from "../../../src/providers/kubernetes/client.ts";
import { targetOfKubeconfig } from "../../../src/providers/kubernetes/kubeconfig.ts";
import { type ConditionBench, openConditionBench } from "../../support/condition-bench.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunBench, startRunBench } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { refusal } from "../api/forge-under-test.ts";

const CLUSTER = "default-cluster";
let bench: RunBench;
let looks: ConditionBench;
let admin: ClusterTarget;
let good: string;
const client = createKubernetesClient();

beforeAll(async () => {
  bench = await startRunBench({ speed: 100 });
  looks = openConditionBench(bench);
  const [known] = await bench.control<{ name: string; kubeconfig: string }[]>("GET", "/clusters");
  good = known?.kubeconfig ?? "";
  admin = targetOfKubeconfig(CLUSTER, good);
  looks.start({ interval: seconds(1) });
});
afterAll(async () => {
  await looks.close();
  await bench.close();
  client.close();
});

interface Rule {
  readonly resources: string[];
  readonly verbs: string[];
}
interface RoleDocument {
  readonly kind: string;
  readonly metadata: { readonly namespace?: string };
  readonly rules?: readonly Rule[];
}

/** The roles of the guide, as the simulated cluster takes them. */
async function rulesOfGuide(): Promise<(Rule & { namespace?: string })[]> {
  const guide = await readFile(join(import.meta.dirname, "../../../docs/guides/kubernetes.md"), "utf8");
  const yaml = /```yaml\n(# millwright-rbac[\s\S]*?)```/.exec(guide)?.[1] ?? "";
  const documents = parseAllDocuments(yaml).map((one) => one.toJS() as RoleDocument);
  return documents.flatMap(({ kind, metadata, rules = [] }) =>
    rules.map(({ resources, verbs }) => ({
      ...{ resources, verbs },
      ...(kind === "Role" && metadata.namespace !== undefined && { namespace: metadata.namespace }),
    })),
  );
}

let users = 0;
async function userWith(rules: readonly object[], more: object = {}): Promise<string> {
  users += 1;
  const user = { name: `user-${users}`, rules, ...more };
  return (await bench.control<{ kubeconfig: string }>("POST", `/clusters/${CLUSTER}/users`, user)).kubeconfig;
}
const give = (kubeconfig: string, skipProbe = false) =>
  bench.client(ClusterService).updateCluster({ name: CLUSTER, kubeconfig, skipProbe });
const inCluster = (method: string, what: string, body: object) =>
  bench.control(method, `/clusters/${CLUSTER}/${what}`, body);
const ask = (request: KubernetesRequest) => client.send(admin, request, aCall());
const tokensLeft = async () => {
  const secrets = await ask({ method: "GET", path: "/api/v1/namespaces/kube-system/secrets" });
  return (secrets.items as { metadata: { name: string } }[]).map(({ metadata }) => metadata.name);
};
const statusOf = async (machineId: string) => (await bench.machines.getMachine({ machineId })).status;
const isReady = (id: string) =>
  eventually(async () => MachineStatus_Phase[(await statusOf(id))?.phase ?? 0] === "READY", { what: `${id} is READY` });
const join_ = async (id: string) => {
  await bench.control("POST", `/devices/${id}/join`, { cluster: CLUSTER });
  await looks.becomes(id, "InCustomerCluster", true);
  await isReady(id);
};
const waitsFor = (id: string, what: RegExp) =>
  eventually(async () => what.exec((await statusOf(id))?.waitingFor ?? "")?.[0], {
    what: `${id} waits for ${what}`,
    seen: async () => JSON.stringify((await statusOf(id))?.waitingFor),
  });
const start = (machineId: string, requestId: string) => bench.runs.startRun({ machineId, requestId, type: "JOIN" });

describe("the rights that the guide lists", () => {
  test("suffice to join, drain and give back, and leave no token; each that is missing is named", async () => {
    const rules = await rulesOfGuide();
    expect(rules).toHaveLength(4);
    expect((await give(await userWith(rules))).warnings).toEqual([]);
    const id = "m-rack1-01";
    await isReady(id);
    const { runId } = await start(id, "joins");
    const run = await bench.ended(runId);
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    expect(run.type).toBe("JOIN");
    expect(await tokensLeft()).toEqual([]);
    await bench.lifecycle.enterMaintenance({ machineId: id });
    await looks.becomes(id, "Drained", true, "NodeDrained");
    await bench.lifecycle.exitMaintenance({ machineId: id });
    await looks.becomes(id, "Drained", false, "NotCordoned");
    const { warnings } = await give(await userWith(rules.slice(0, 1)));
    expect(warnings.join()).toContain(
      "may not: list pods in all namespaces; create pods/eviction in all namespaces; create secrets in kube-system; delete secrets in kube-system",
    );
    const refused = await refusal(start("m-rack1-02", "may not mint"));
    expect(refused.message).toContain("the user of its kubeconfig may not create secrets in kube-system");
    await give(good);
  });

  test("are as good with a client certificate; one that is over is told as that", async () => {
    const rules = await rulesOfGuide();
    expect((await give(await userWith(rules, { sign_in: "certificate" }))).warnings).toEqual([]);
    const over = await userWith(rules, { sign_in: "certificate", days: -1 });
    expect((await refusal(give(over))).message).toMatch(/status 401.*its client certificate expired at /);
    await give(good);
  });
});

test("a join that fails leaves no token behind, and asks a cluster that breaks once again at once", async () => {
  const id = "m-rack1-03";
  await isReady(id);
  await bench.fault({ device: id, fault: { type: "join_fails" }, times: 1 });
  const secrets = { device: CLUSTER, method: "POST", path: "/api/v1/namespaces/kube-system/secrets" };
  await bench.fault({ ...secrets, fault: { type: "status", status: 500 }, times: 1 });
  const begun = Date.now();
  const { runId } = await start(id, "fails once");
  const run = await bench.ended(runId);
  expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
  // A cluster that may have obeyed is given half a minute; nothing is waited for where nothing can have begun.
  expect(Date.now() - begun).toBeLessThan(25_000);
  expect(run.steps[0]?.retryCount).toBe(1);
  expect(await tokensLeft()).toEqual([]);
});

test("a drain goes on past what cannot go, says why in the cluster's words, and takes more when asked to", async () => {
  const id = "m-rack1-04";
  await join_(id);
  const place = (pod: object) => inCluster("POST", "pods", { node: id, ...pod });
  await place({ name: "db-1", owner: "db", labels: { app: "db" } });
  await inCluster("PUT", "budgets", { name: "keep-db", labels: { app: "db" }, min_available: 1 });
  await place({ name: "two-1", owner: "two", labels: { app: "two" } });
  for (const name of ["one", "other"])
    await inCluster("PUT", "budgets", { name, labels: { app: "two" }, min_available: 0 });
  await place({ name: "late", namespace: "ending", owner: "late" });
  await inCluster("PUT", "namespaces", { name: "ending", terminating: true });
  await place({ name: "bare" });
  await place({ name: "cache", owner: "cache", local_data: true });
  await place({ name: "static", mirror: true });
  await place({ name: "done", phase: "Succeeded" });
  await bench.lifecycle.enterMaintenance({ machineId: id });
  const waiting = await waitsFor(id, /5 pods remain: .*/);
  expect(waiting).toContain("The disruption budget keep-db needs 1 healthy pods and has 1 currently");
  expect(waiting).toContain("no controller would start default/bare again: enter-maintenance --evict-bare-pods");
  expect(waiting).toContain("data of default/cache would be lost: enter-maintenance --delete-local-data");
  expect(waiting).toContain("the cluster does not let go now of");
  const { waitingFor } = await bench.client(ExplainService).explain({ kind: "machine", id });
  expect(waitingFor.join()).toContain("keep-db");
  expect((await looks.condition(id, "Drained"))?.status).toBe(false);
  await bench.lifecycle.enterMaintenance({ machineId: id, evictBarePods: true, deleteLocalData: true });
  await waitsFor(id, /3 pods remain: .*/);
  for (const name of ["keep-db", "one"]) await inCluster("PUT", "budgets", { name, labels: {}, min_available: null });
  await inCluster("PUT", "namespaces", { name: "ending", terminating: false });
  await looks.becomes(id, "Drained", true, "NodeDrained");
  // Once it is drained there is nothing to change: as ever, a maintenance is entered once.
  expect(
    (await refusal(bench.lifecycle.enterMaintenance({ machineId: id, evictBarePods: true, deleteLocalData: true })))
      .message,
  ).toContain("MAINTENANCE");
});

test("a node at the machine's address with another UUID withholds Drained, and is named on the machine and in explain", async () => {
  const id = "m-rack1-05";
  await isReady(id);
  const address = bench.simulated.find(({ machine_id }) => machine_id === id)?.ssh_endpoint.split(":")[0] ?? "";
  const nodeInfo = {
    bootID: "b",
    machineID: "m",
    systemUUID: "aaaaaaaa-0000-4000-8000-000000000000",
    kubeletVersion: "v1.31.4",
  };
  const status = {
    conditions: [{ type: "Ready", status: "True" }],
    addresses: [{ type: "InternalIP", address }],
    nodeInfo,
  };
  await ask({ method: "POST", path: "/api/v1/nodes", body: { metadata: { name: "stranger" }, status } });
  const seen = await looks.becomes(id, "InCustomerCluster", false, "NodeContradicts");
  expect(seen.message).toContain(
    `node stranger of ${CLUSTER} has the address ${address} of this machine, but system UUID aaaaaaaa`,
  );
  await bench.lifecycle.enterMaintenance({ machineId: id });
  await looks.becomes(id, "Drained", false, "NodeContradicts");
  await waitsFor(id, /node stranger .* find out which machine it is/);
  const explained = await bench.client(ExplainService).explain({ kind: "machine", id });
  expect(JSON.stringify([explained.headline, explained.waitingFor])).toContain("stranger");
  await ask({ method: "DELETE", path: "/api/v1/nodes/stranger" });
  await looks.becomes(id, "Drained", true, "NotInCluster");
});

test("a cluster that keeps us out is shown as what it is, and what is known of the node stays", async () => {
  const id = "m-rack1-06";
  await join_(id);
  const explain = async () => {
    const { headline, nextCommands } = await bench.client(ExplainService).explain({ kind: "machine", id });
    return `${headline} ${nextCommands.map(({ command }) => command).join()}`;
  };
  const helps = `millwright cluster update ${CLUSTER} --kubeconfig <file>`;
  await give(good.replace(/token: \S+/, "token: expired"), true);
  expect((await looks.becomes(id, "InCustomerCluster", true, "CredentialsRefused")).message).toContain("status 401");
  expect(await explain()).toContain(helps);
  await give(await userWith([]), true);
  await eventually(async () => (await looks.condition(id, "InCustomerCluster"))?.message.includes("status 403"), {
    what: "the missing right is shown",
  });
  await bench.deps.db.transaction((tx) =>
    bench.deps.secrets.put(tx, `cluster/${CLUSTER}`, good.replace(/server: /, "proxy-url: http://p\n      server: ")),
  );
  expect((await looks.becomes(id, "InCustomerCluster", true, "KubeconfigUnusable")).message).toContain("proxy-url");
  expect(await explain()).toContain(helps);
  await give(good);
  await looks.becomes(id, "InCustomerCluster", true, "NodeReady");
});

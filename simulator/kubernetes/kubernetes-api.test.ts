import { execFile, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { signIn } from "../testing/ssh-client.ts";
import { type MachineRow, startTemporarySimulator, temporaryDataDir } from "../testing/temporary-simulator.ts";

interface ClusterRow {
  readonly name: string;
  readonly api_url: string;
  readonly token: string;
  readonly kubeconfig: string;
  readonly join_endpoint: string;
  readonly ca_cert_hash: string;
}
interface NodeBody {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
  readonly spec: { readonly unschedulable?: boolean; readonly taints?: { key: string }[] };
  readonly status: {
    readonly conditions: { readonly type: string; readonly status: string }[];
    readonly nodeInfo: Readonly<Record<string, string>>;
  };
}

const hasKubectl = spawnSync("kubectl", ["version", "--client"]).status === 0;
const files = temporaryDataDir();
let site: Awaited<ReturnType<typeof startTemporarySimulator>>;
let rows: MachineRow[];
let cluster: ClusterRow;
const reports: string[] = [];

beforeAll(async () => {
  site = await startTemporarySimulator({ site: "racks=1", speed: 500, log: (line) => reports.push(line) });
  rows = (await site.control<MachineRow[]>("GET", "/inventory/machines")).body;
  const { body } = await site.control<ClusterRow[]>("GET", "/clusters");
  cluster = body[0] as ClusterRow;
});
afterAll(async () => {
  await site[Symbol.asyncDispose]();
  files[Symbol.dispose]();
  expect(reports).toEqual([]);
});
beforeEach(async () => {
  await site.control("DELETE", "/faults");
});

async function api<T = Record<string, unknown>>(
  method: string,
  path: string,
  options: { body?: unknown; type?: string; token?: string | null } = {},
): Promise<{ status: number; body: T }> {
  const token = options.token === undefined ? cluster.token : options.token;
  const response = await fetch(cluster.api_url + path, {
    method,
    headers: {
      ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
      ...(options.body === undefined ? {} : { "Content-Type": options.type ?? "application/json" }),
    },
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
  });
  return { status: response.status, body: (await response.json()) as T };
}

const readyOf = (node: NodeBody) => node.status.conditions.find(({ type }) => type === "Ready")?.status;
const node = async (name: string) => (await api<NodeBody>("GET", `/api/v1/nodes/${name}`)).body;
const joinByHand = (id: string) => site.control("POST", `/devices/${id}/join`, { cluster: "default-cluster" });
const shellOf = (id: string) => signIn(rows.find(({ machine_id }) => machine_id === id) as MachineRow);
const merge = (body: unknown) => ({ body, type: "application/merge-patch+json" });

async function mintToken(id: string, expiration?: string): Promise<string> {
  const stringData = {
    "token-id": id,
    "token-secret": "0123456789abcdef",
    "usage-bootstrap-authentication": "true",
    ...(expiration === undefined ? {} : { expiration }),
  };
  const reply = await api("POST", "/api/v1/namespaces/kube-system/secrets", {
    body: { metadata: { name: `bootstrap-token-${id}` }, type: "bootstrap.kubernetes.io/token", stringData },
  });
  expect(reply.status).toBe(201);
  return `${id}.0123456789abcdef`;
}

describe("joining", () => {
  test("a machine with a minted token and the authority's hash becomes a node that is ready", async () => {
    const token = await mintToken("aaaaaa");
    using shell = await shellOf("m-rack1-01");
    expect((await shell.run("systemctl is-active kubelet")).code).toBe(3);
    const command = `kubeadm join ${cluster.join_endpoint} --token ${token} --discovery-token-ca-cert-hash ${cluster.ca_cert_hash}`;
    expect(await shell.run(command)).toMatchObject({ code: 0, stdout: expect.stringContaining("has joined") });
    expect((await shell.run("systemctl is-active kubelet")).stdout).toBe("active\n");
    const joined = await node("m-rack1-01");
    expect(readyOf(joined)).toBe("True");
    expect(joined.status.nodeInfo).toMatchObject({
      systemUUID: rows[0]?.system_uuid,
      bootID: (await shell.run("cat /proc/sys/kernel/random/boot_id")).stdout.trim(),
      kubeletVersion: expect.stringMatching(/^v1\./),
    });
    expect((await shell.run(command)).stderr).toContain("already exists");
    expect((await site.control("GET", "/devices/m-rack1-01")).body).toMatchObject({
      kubernetes: { cluster: "default-cluster" },
      effects: { joins_started: 1, joins: 1 },
    });
  });

  test("a wrong token, an expired one, a wrong hash and a wrong place are refused, each with its reason", async () => {
    using shell = await shellOf("m-rack1-02");
    const token = await mintToken("bbbbbb");
    const expired = await mintToken("cccccc", "2020-01-01T00:00:00Z");
    const join = (endpoint: string, with_: string, hash: string) =>
      shell.run(`kubeadm join ${endpoint} --token ${with_} --discovery-token-ca-cert-hash ${hash}`);
    const { join_endpoint: place, ca_cert_hash: hash } = cluster;
    expect(await join(place, "bbbbbb.fedcba9876543210", hash)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("token ID"),
    });
    expect((await join(place, expired, hash)).stderr).toContain("expired");
    expect((await join(place, token, `sha256:${"0".repeat(64)}`)).stderr).toContain("pinned");
    expect((await join("127.0.0.1:1", token, hash)).stderr).toContain("no route");
    expect((await site.control("GET", "/devices/m-rack1-02")).body).toMatchObject({ effects: { joins_started: 0 } });
  });

  test("can fail, and is possible again afterwards", async () => {
    using shell = await shellOf("m-rack1-03");
    const token = await mintToken("dddddd");
    await site.control("POST", "/faults", { device: "m-rack1-03", fault: { type: "join_fails" }, times: 1 });
    const command = `kubeadm join ${cluster.join_endpoint} --token=${token} --discovery-token-unsafe-skip-ca-verification`;
    expect(await shell.run(command)).toMatchObject({ code: 1, stderr: expect.stringContaining("timed out") });
    expect((await api("GET", "/api/v1/nodes/m-rack1-03")).status).toBe(404);
    expect((await shell.run(command)).code).toBe(0);
    expect((await site.control("GET", "/devices/m-rack1-03")).body).toMatchObject({
      effects: { joins_started: 2, joins: 1, joins_failed: 1 },
    });
  });

  test("what a client needs for it stands in cluster-info, for anybody to read", async () => {
    const { status, body } = await api<{ data: { kubeconfig: string } }>(
      "GET",
      "/api/v1/namespaces/kube-public/configmaps/cluster-info",
      { token: null },
    );
    expect(status).toBe(200);
    expect(body.data.kubeconfig).toContain("certificate-authority-data");
    expect(body.data.kubeconfig).not.toContain(cluster.token);
  });
});

describe("a node", () => {
  test("is not ready once its machine has been silent for long enough, and ready again when it is back", async () => {
    await joinByHand("m-rack1-04");
    await site.control("POST", "/devices/m-rack1-04/power", { power: "off" });
    await expect.poll(async () => readyOf(await node("m-rack1-04")), { timeout: 9_000 }).toBe("Unknown");
    const before = (await node("m-rack1-04")).status.nodeInfo.bootID;
    await site.control("POST", "/devices/m-rack1-04/power", { power: "on" });
    await expect.poll(async () => readyOf(await node("m-rack1-04")), { timeout: 9_000 }).toBe("True");
    expect((await node("m-rack1-04")).status.nodeInfo.bootID).not.toBe(before);
  });

  test.each([
    ["application/merge-patch+json", { spec: { unschedulable: true } }, { spec: { unschedulable: null } }],
    ["application/strategic-merge-patch+json", { spec: { unschedulable: true } }, { spec: { unschedulable: false } }],
    [
      "application/json-patch+json",
      [{ op: "add", path: "/spec/unschedulable", value: true }],
      [{ op: "remove", path: "/spec/unschedulable" }],
    ],
  ])("is cordoned and uncordoned by %s", async (type, cordon, uncordon) => {
    await joinByHand("m-rack1-05");
    expect((await api("PATCH", "/api/v1/nodes/m-rack1-05", { body: cordon, type })).status).toBe(200);
    expect((await node("m-rack1-05")).spec).toMatchObject({
      unschedulable: true,
      taints: [{ key: "node.kubernetes.io/unschedulable" }],
    });
    expect((await api("PATCH", "/api/v1/nodes/m-rack1-05", { body: uncordon, type })).status).toBe(200);
    expect((await node("m-rack1-05")).spec).toEqual({});
  });

  test("refuses a patch against an older version of it, and what is no patch", async () => {
    await joinByHand("m-rack1-06");
    const { resourceVersion } = (await node("m-rack1-06")).metadata;
    const change = merge({ metadata: { resourceVersion }, spec: { unschedulable: true } });
    expect((await api("PATCH", "/api/v1/nodes/m-rack1-06", change)).status).toBe(200);
    expect((await api("PATCH", "/api/v1/nodes/m-rack1-06", change)).status).toBe(409);
    expect((await api("PATCH", "/api/v1/nodes/m-rack1-06", { body: {}, type: "text/plain" })).status).toBe(415);
    expect((await api("PATCH", "/api/v1/nodes/m-rack1-06", merge({ spec: { unschedulable: 3 } }))).status).toBe(422);
  });

  test("is emptied by evictions, daemons apart", async () => {
    await joinByHand("m-rack1-07");
    const pods = async () =>
      (
        await api<{ items: { metadata: { name: string; namespace: string; ownerReferences: { kind: string }[] } }[] }>(
          "GET",
          "/api/v1/pods?fieldSelector=spec.nodeName%3Dm-rack1-07",
        )
      ).body.items.map(({ metadata }) => metadata);
    const work = (await pods()).filter(({ ownerReferences }) => ownerReferences[0]?.kind !== "DaemonSet");
    expect(work.length).toBeGreaterThan(0);
    for (const { name, namespace } of work) {
      const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } };
      const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
      expect((await api("POST", path, { body: eviction })).status).toBe(201);
    }
    await expect
      .poll(async () => (await pods()).map(({ ownerReferences }) => ownerReferences[0]?.kind), { timeout: 9_000 })
      .toEqual(["DaemonSet", "DaemonSet"]);
    expect((await api("POST", `/api/v1/namespaces/default/pods/${work[0]?.name}/eviction`, { body: {} })).status).toBe(
      404,
    );
  });

  test("that is deleted comes back with the next start of its kubelet, not by itself", async () => {
    await joinByHand("m-rack1-08");
    expect((await api("DELETE", "/api/v1/nodes/m-rack1-08")).status).toBe(200);
    expect((await api("GET", "/api/v1/nodes/m-rack1-08")).status).toBe(404);
    await site.redfish("m-rack1-08", "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", {
      method: "POST",
      body: { ResetType: "ForceRestart" },
    });
    await expect.poll(async () => (await api("GET", "/api/v1/nodes/m-rack1-08")).status, { timeout: 9_000 }).toBe(200);
  });

  test("can be watched", async () => {
    await joinByHand("m-rack1-09");
    const response = await fetch(
      `${cluster.api_url}/api/v1/nodes?watch=true&fieldSelector=metadata.name%3Dm-rack1-09`,
      { headers: { Authorization: `Bearer ${cluster.token}` } },
    );
    const lines = linesOf(response);
    const next = async () => {
      const event = JSON.parse((await lines.next()).value ?? "null") as { type: string; object: NodeBody };
      return [event.type, event.object.spec.unschedulable === true];
    };
    expect(await next()).toEqual(["ADDED", false]);
    await api("PATCH", "/api/v1/nodes/m-rack1-09", merge({ spec: { unschedulable: true } }));
    expect(await next()).toEqual(["MODIFIED", true]);
    await api("DELETE", "/api/v1/nodes/m-rack1-09");
    expect(await next()).toEqual(["DELETED", true]);
    await lines.return(undefined);
  });
});

describe("the API of a cluster", () => {
  test("opens with its token alone", async () => {
    expect((await api("GET", "/api/v1/nodes", { token: null })).status).toBe(403);
    expect((await api("GET", "/api/v1/nodes", { token: "wrong" })).body).toMatchObject({ kind: "Status", code: 401 });
    expect((await api("GET", "/version", { token: null })).status).toBe(200);
  });

  test("breaks as a fault rule for the cluster says", async () => {
    await site.control("POST", "/faults", {
      device: "default-cluster",
      path: "/api/v1/nodes",
      fault: { type: "status", status: 503 },
      times: 1,
    });
    expect(await api("GET", "/api/v1/nodes")).toMatchObject({ status: 503, body: { reason: "ServiceUnavailable" } });
    expect((await api("GET", "/api/v1/nodes")).status).toBe(200);
  });

  test("is read and drained by kubectl", async (context) => {
    if (!hasKubectl) context.skip("needs kubectl");
    await joinByHand("m-rack1-10");
    const config = join(files.path, "kubeconfig");
    writeFileSync(config, cluster.kubeconfig, { mode: 0o600 });
    const kubectl = async (...args: string[]) =>
      (
        await promisify(execFile)("kubectl", ["--kubeconfig", config, ...args], {
          env: { HOME: files.path, PATH: process.env.PATH ?? "" },
        })
      ).stdout;
    expect(await kubectl("get", "nodes", "m-rack1-10")).toMatch(/^NAME.*STATUS.*\nm-rack1-10 +Ready +/);
    await kubectl("drain", "m-rack1-10", "--ignore-daemonsets", "--timeout=20s");
    expect(await kubectl("get", "nodes")).toMatch(/m-rack1-10 +Ready,SchedulingDisabled/);
    expect(
      (await kubectl("get", "pods", "-A", "--field-selector", "spec.nodeName=m-rack1-10", "-o", "name")).split("\n")
        .length - 1,
    ).toBe(2);
    await kubectl("uncordon", "m-rack1-10");
    expect((await node("m-rack1-10")).spec).toEqual({});
  }, 60_000);
});

async function* linesOf(response: Response): AsyncGenerator<string, undefined> {
  let rest = "";
  for await (const chunk of response.body ?? []) {
    rest += Buffer.from(chunk).toString();
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  return undefined;
}

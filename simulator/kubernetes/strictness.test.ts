import { execFile, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { createRequest } from "../certificate/issued.ts";
import { startTemporarySimulator, temporaryDataDir } from "../testing/temporary-simulator.ts";

interface Listed {
  readonly metadata: { readonly continue?: string; readonly remainingItemCount?: number };
  readonly items: readonly { readonly metadata: { readonly name: string; readonly uid: string } }[];
}

const hasKubectl = spawnSync("kubectl", ["version", "--client"]).status === 0;
const files = temporaryDataDir();
let site: Awaited<ReturnType<typeof startTemporarySimulator>>;
let cluster: { api_url: string; api_url_tls: string; token: string; kubeconfig: string; ca_certificate: string };
const NODES = ["m-rack1-01", "m-rack1-02", "m-rack1-03", "m-rack1-04"];

beforeAll(async () => {
  site = await startTemporarySimulator({ site: "racks=1", speed: 500 });
  [cluster] = (await site.control<[typeof cluster]>("GET", "/clusters")).body;
  for (const id of NODES) await site.control("POST", `/devices/${id}/join`, { cluster: "default-cluster" });
});
afterAll(async () => {
  await site[Symbol.asyncDispose]();
  files[Symbol.dispose]();
});

async function api<T = { message: string; reason: string; details?: { causes: unknown[] } }>(
  method: string,
  path: string,
  options: { body?: unknown; token?: string | null; headers?: Readonly<Record<string, string>> } = {},
): Promise<{ status: number; body: T }> {
  const token = options.token === undefined ? cluster.token : options.token;
  const response = await fetch(cluster.api_url + path, {
    method,
    headers: {
      ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
      ...(options.body === undefined ? {} : { "Content-Type": "application/json" }),
      ...options.headers,
    },
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
  });
  return { status: response.status, body: (await response.json()) as T };
}

/** Over TLS, with a certificate of one's own. */
async function certified(kubeconfig: string, path: string): Promise<number> {
  const { users } = parse(kubeconfig) as { users: { user: Record<string, string> }[] };
  const plain = (name: string) => Buffer.from(users[0]?.user[name] ?? "", "base64").toString("utf8");
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const options = { ca: cluster.ca_certificate, cert: plain("client-certificate-data"), key: plain("client-key-data") };
  request(cluster.api_url_tls + path, { ...options, agent: false }, (answer) =>
    resolve(answer.resume().statusCode ?? 0),
  )
    .on("error", reject)
    .end();
  return promise;
}

const inCluster = async <T = { token: string; kubeconfig: string }>(method: string, what: string, body?: unknown) =>
  (await site.control<T>(method, `/clusters/default-cluster/${what}`, body)).body;
const place = (pod: object) => inCluster("POST", "pods", pod);
const evict = (namespace: string, name: string, more: object = {}) =>
  api("POST", `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, {
    body: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace }, ...more },
  });
const podsOn = async (node: string) =>
  (await api<Listed>("GET", `/api/v1/pods?fieldSelector=spec.nodeName%3D${node}`)).body.items.map(
    ({ metadata }) => metadata.name,
  );

describe("a list", () => {
  test("comes in pages, and what was begun before a compaction ends with 410", async () => {
    const first = (await api<Listed>("GET", "/api/v1/nodes?limit=3")).body;
    expect(first.items.map(({ metadata }) => metadata.name)).toEqual(NODES.slice(0, 3));
    expect(first.metadata).toMatchObject({ continue: expect.any(String), remainingItemCount: 1 });
    const rest = `/api/v1/nodes?limit=3&continue=${first.metadata.continue}`;
    const second = (await api<Listed>("GET", rest)).body;
    expect(second.items.map(({ metadata }) => metadata.name)).toEqual(NODES.slice(3));
    expect(second.metadata.continue).toBeUndefined();
    await inCluster("POST", "compact");
    expect(await api("GET", rest)).toMatchObject({ status: 410, body: { reason: "Expired" } });
    expect((await api("GET", "/api/v1/nodes?limit=3&continue=nonsense")).status).toBe(400);
    expect((await api("GET", "/api/v1/nodes?limit=-1")).status).toBe(400);
  });

  test("is not selected by a field that it does not know", async () => {
    const { status, body } = await api("GET", "/api/v1/pods?fieldSelector=spec.node%3Dm-rack1-01");
    expect([status, body.message]).toEqual([400, expect.stringContaining("field label not supported: spec.node")]);
  });
});

describe("an eviction", () => {
  test("is refused by a budget with its name and numbers, by two budgets with 500, and goes once there is room", async () => {
    for (const name of ["db-1", "db-2"]) await place({ node: NODES[0], name, owner: "db", labels: { app: "db" } });
    const budget = (name: string, min_available: number | null) =>
      inCluster("PUT", "budgets", { name, labels: { app: "db" }, min_available });
    await budget("keep-two", 2);
    expect(await evict("default", "db-1")).toMatchObject({
      status: 429,
      body: {
        message: "Cannot evict pod as it would violate the pod's disruption budget.",
        details: { causes: [{ message: "The disruption budget keep-two needs 2 healthy pods and has 2 currently" }] },
      },
    });
    await budget("keep-one", 1);
    expect((await evict("default", "db-1")).status).toBe(500);
    await budget("keep-two", null);
    expect((await evict("default", "db-1")).status).toBe(201);
    expect((await evict("default", "db-2")).status).toBe(429);
  });

  test("is of the very pod that is meant, in a namespace that lives, and well-formed", async () => {
    await place({ node: NODES[0], name: "one", owner: "web" });
    expect((await evict("default", "one", { deleteOptions: { preconditions: { uid: "other" } } })).status).toBe(409);
    expect((await evict("default", "one", { kind: "Pod" })).status).toBe(400);
    expect((await evict("default", "one", { metadata: { name: "two" } })).status).toBe(400);
    expect((await evict("default", "none")).status).toBe(404);
    await place({ node: NODES[0], name: "last", namespace: "ending", owner: "web" });
    await inCluster("PUT", "namespaces", { name: "ending", terminating: true });
    const { status, body } = await evict("ending", "last");
    expect([status, body.message]).toEqual([403, expect.stringContaining("because it is being terminated")]);
  });

  test("changes nothing of a static pod, and does not end one with a finalizer", async () => {
    await place({ node: NODES[1], name: "static", mirror: true });
    await place({ node: NODES[1], name: "held", owner: "web", finalizers: ["example.com/hold"] });
    await place({ node: NODES[1], name: "plain", owner: "web" });
    for (const name of ["static", "held", "plain"]) expect((await evict("default", name)).status).toBe(201);
    await expect.poll(() => podsOn(NODES[1] ?? ""), { timeout: 9_000 }).not.toContain("plain");
    expect(await podsOn(NODES[1] ?? "")).toEqual(expect.arrayContaining(["static", "held"]));
    const { body } = await api<{ metadata: object }>("GET", "/api/v1/namespaces/default/pods/held");
    expect(body.metadata).toMatchObject({ deletionTimestamp: expect.any(String), finalizers: ["example.com/hold"] });
  });
});

describe("a user", () => {
  test("may do what its rules say, is told what else it may not, and can ask beforehand", async () => {
    const rules = [
      { verbs: ["list"], resources: ["nodes"] },
      { verbs: ["create"], resources: ["secrets"], namespace: "kube-system" },
    ];
    const { token } = await inCluster("POST", "users", { name: "kim", rules });
    expect((await api("GET", "/api/v1/nodes", { token })).status).toBe(200);
    const refused = await api("PATCH", `/api/v1/nodes/${NODES[0]}`, { token, body: {} });
    expect([refused.status, refused.body.message]).toEqual([
      403,
      `nodes "${NODES[0]}" is forbidden: User "kim" cannot patch resource "nodes" in API group "" at the cluster scope`,
    ]);
    expect((await api("POST", "/api/v1/namespaces/default/secrets", { token, body: {} })).status).toBe(403);
    const mayI = async (resourceAttributes: object) =>
      (
        await api<{ status: { allowed: boolean } }>("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
          token,
          body: { spec: { resourceAttributes } },
        })
      ).body.status.allowed;
    expect(await mayI({ verb: "list", resource: "nodes" })).toBe(true);
    expect(await mayI({ verb: "create", resource: "pods", subresource: "eviction" })).toBe(false);
    expect(await mayI({ verb: "create", resource: "secrets", namespace: "kube-system" })).toBe(true);
  });

  test("signs in with a certificate of the cluster, until that is over", async () => {
    const rules = [{ verbs: ["list"], resources: ["nodes"] }];
    const given = { name: "lee", sign_in: "certificate", rules };
    const { kubeconfig } = await inCluster("POST", "users", given);
    expect(await certified(kubeconfig, "/api/v1/nodes")).toBe(200);
    expect(await certified(kubeconfig, "/api/v1/pods")).toBe(403);
    const { kubeconfig: over } = await inCluster("POST", "users", { ...given, days: -1 });
    expect(await certified(over, "/api/v1/nodes")).toBe(401);
  });

  test("acts as another one only where it may", async () => {
    const { token } = await inCluster("POST", "users", {
      name: "sam",
      rules: [{ verbs: ["list"], resources: ["nodes"] }],
    });
    const as = { headers: { "Impersonate-User": "sam" } };
    expect((await api("GET", "/api/v1/nodes", as)).status).toBe(200);
    expect((await api("GET", "/api/v1/pods", as)).status).toBe(403);
    expect((await api("GET", "/api/v1/nodes", { ...as, token })).status).toBe(403);
  });

  test("who is nobody reads cluster-info, and one who signs in needs a right to", async () => {
    const path = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
    const { token } = await inCluster("POST", "users", { name: "noa", rules: [] });
    expect((await api("GET", path, { token: null })).status).toBe(200);
    expect((await api("GET", path, { token })).status).toBe(403);
  });
});

test("a bootstrap token is good for the certificate of a kubelet, and for nothing else", async () => {
  const token = "aaaaaa.0123456789abcdef";
  const stringData = {
    "token-id": "aaaaaa",
    "token-secret": "0123456789abcdef",
    "usage-bootstrap-authentication": "true",
  };
  const secret = { metadata: { name: "bootstrap-token-aaaaaa" }, type: "bootstrap.kubernetes.io/token", stringData };
  expect((await api("POST", "/api/v1/namespaces/kube-system/secrets", { body: secret })).status).toBe(201);
  const elsewhere = { ...secret, metadata: { name: "x", namespace: "default" } };
  expect((await api("POST", "/api/v1/namespaces/kube-system/secrets", { body: elsewhere })).status).toBe(400);
  expect((await api("POST", "/api/v1/namespaces/none/secrets", { body: secret })).status).toBe(404);
  const node = {
    metadata: { name: "n1" },
    status: { nodeInfo: { bootID: "", machineID: "", systemUUID: "", kubeletVersion: "" } },
  };
  expect((await api("POST", "/api/v1/nodes", { token, body: node })).status).toBe(403);
  expect((await api("GET", "/api/v1/nodes", { token })).status).toBe(403);
  expect((await api("GET", "/api/v1/namespaces/kube-system/secrets", { token })).status).toBe(403);
  const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  const ask = (organization: string) => ({
    metadata: { generateName: "csr-" },
    spec: {
      request: Buffer.from(createRequest({ commonName: "system:node:n1", organization }).request).toString("base64"),
      signerName: "kubernetes.io/kube-apiserver-client-kubelet",
      usages: ["client auth"],
    },
  });
  const certificateFor = async (organization: string) => {
    const { body } = await api<{ metadata: { name: string } }>("POST", requests, { token, body: ask(organization) });
    const answer = await api<{ status?: { certificate?: string } }>("GET", `${requests}/${body.metadata.name}`, {
      token,
    });
    return answer.body.status?.certificate;
  };
  expect(await certificateFor("system:masters")).toBeUndefined();
  expect(await certificateFor("system:nodes")).toMatch(/./);
  expect((await api("POST", requests, { token, body: { metadata: {}, spec: {} } })).status).toBe(422);
});

test("kubectl drains it as a real one: not without being asked to where something would be lost", async (context) => {
  if (!hasKubectl) context.skip("needs kubectl");
  const config = join(files.path, "kubeconfig");
  writeFileSync(config, cluster.kubeconfig, { mode: 0o600 });
  const kubectl = async (...args: string[]) => {
    const options = { env: { HOME: files.path, PATH: process.env.PATH ?? "" } };
    const run = promisify(execFile)("kubectl", ["--kubeconfig", config, ...args], options);
    return run.then(
      ({ stdout, stderr }) => stdout + stderr,
      (error: { stdout: string; stderr: string }) => `FAILED ${error.stdout}${error.stderr}`,
    );
  };
  const node = NODES[2] ?? "";
  await place({ node, name: "bare" });
  await place({ node, name: "cache", owner: "web", local_data: true });
  await place({ node, name: "done", phase: "Succeeded" });
  await place({ node, name: "static", mirror: true });
  const drain = (...more: string[]) => kubectl("drain", node, "--ignore-daemonsets", "--timeout=20s", ...more);
  const refused = await drain();
  expect(refused).toMatch(/^FAILED[\s\S]*local storage[\s\S]*default\/cache/);
  expect(refused).toMatch(/declare no controller[\s\S]*default\/bare/);
  expect(await podsOn(node)).toEqual(expect.arrayContaining(["bare", "cache"]));
  expect(await drain("--force", "--delete-emptydir-data")).toContain("drained");
  const left = await podsOn(node);
  expect(left).toContain("static");
  expect(left.some((name) => ["bare", "cache"].includes(name))).toBe(false);
  expect(await kubectl("auth", "can-i", "list", "nodes")).toContain("yes");
}, 60_000);

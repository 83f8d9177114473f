import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { afterEach, describe, expect, test } from "vitest";
import { CERTIFICATE, KEY } from "../../../test/support/counterparts/client-certificate.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import { CLUSTER_RIGHTS } from "../../capabilities/clusters/access.ts";
import { type Duration, milliseconds, minutes } from "../../kernel/time/duration.ts";
import { joinPlaceOf, newBootstrapToken } from "./join-material.ts";
import { createKubernetesProvider } from "./kubernetes-provider.ts";
import { marksOf, mustLeave } from "./nodes.ts";

const call = { signal: new AbortController().signal, subject: "test", mayTouchDevice: (wanted: Duration) => wanted };
const ALL = { barePods: true, localData: true };

describe("a node", () => {
  test("tells of its machine by its UUID, its serial and its addresses, and what it calls itself is no address", () => {
    const addresses = [
      { type: "Hostname", address: "m-1" },
      { type: "InternalIP", address: "10.0.0.5" },
    ];
    const labels = { "millwright.io/serial": "S1" };
    const status = { nodeInfo: { systemUUID: "0E9B0C3E-6A1C-4B53-9D1E-0A5F6D1C2B3A" }, addresses };
    expect(marksOf({ metadata: { name: "n1", labels }, status })).toEqual({
      name: "n1",
      systemUuid: "0e9b0c3e-6a1c-4b53-9d1e-0a5f6d1c2b3a",
      serial: "S1",
      addresses: ["10.0.0.5"],
    });
  });

  test("is empty when only daemons, static pods and pods that are over are left", () => {
    expect(mustLeave({ metadata: { ownerReferences: [{ kind: "DaemonSet" }] } })).toBe(false);
    expect(mustLeave({ metadata: { annotations: { "kubernetes.io/config.mirror": "x" } } })).toBe(false);
    expect(mustLeave({ status: { phase: "Succeeded" } })).toBe(false);
    expect(mustLeave({ metadata: { ownerReferences: [{ kind: "ReplicaSet" }] }, status: { phase: "Running" } })).toBe(
      true,
    );
  });
});

test("bootstrap tokens have the form that clusters demand, and are never the same", () => {
  const tokens = Array.from({ length: 50 }, () => newBootstrapToken("abcdef"));
  for (const { id, secret } of tokens) expect(`${id}.${secret}`).toMatch(/^[a-z0-9]{6}\.[a-z0-9]{16}$/);
  expect(new Set(tokens.map(({ secret }) => secret)).size).toBe(50);
});

test("a cluster tells where nodes reach it, with the usual port where it names none", () => {
  const info = (server: string) =>
    joinPlaceOf(`clusters: [{ cluster: { server: '${server}', certificate-authority-data: UEVN } }]`);
  expect(info("https://k:6443")).toEqual({ endpoint: "k:6443", ca: "PEM" });
  expect(info("https://k")?.endpoint).toBe("k:443");
  expect(joinPlaceOf("clusters: []")).toBeUndefined();
});

describe("the API", () => {
  let server: Server | undefined;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });
  const provider = createKubernetesProvider({ requestTimeout: milliseconds(300) });

  async function serve(
    answer: (request: IncomingMessage) => { status: number; body: unknown } | undefined,
  ): Promise<ClusterTarget> {
    server = createServer((request, response) => {
      const given = answer(request);
      if (given !== undefined) response.writeHead(given.status).end(JSON.stringify(given.body));
    });
    await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    return { name: "c1", apiUrl: `http://127.0.0.1:${port}`, ca: null, credentials: { token: "top-secret" } };
  }
  const identity = { systemUuid: "u-1", serial: null, addresses: [] };

  test.each(["127.0.0.1", "localhost"])(
    "at %s is not called when its address lies outside of the allowed networks",
    async (host) => {
      let asked = 0;
      const target = await serve(() => {
        asked += 1;
        return { status: 200, body: { items: [] } };
      });
      const apiUrl = target.apiUrl.replace("127.0.0.1", host);
      const fenced = createKubernetesProvider({ mayReach: () => false });
      await expect(fenced.can.cluster.findNode({ ...target, apiUrl }, identity, call)).rejects.toThrow(
        /cluster c1: .* is outside the networks that may be called: add its network to bmc\.allowed_networks/,
      );
      expect(asked).toBe(0);
      const open = createKubernetesProvider({ mayReach: (address) => address === "127.0.0.1" });
      expect(await open.can.cluster.findNode({ ...target, apiUrl }, identity, call)).toBeUndefined();
      expect(asked).toBe(1);
      open.close();
    },
  );

  test.each([
    [401, "fail", "credentials_rejected"],
    [403, "fail", "forbidden"],
    [422, "fail", "refused_by_device"],
    [410, "retry", "busy"],
    [429, "retry", "busy"],
    [503, "retry", "busy"],
  ])(
    "that answers %i fails with %s (%s), and what it repeats of our token is left out",
    async (status, disposition, code) => {
      const target = await serve(() => ({ status, body: { message: "no\nto top-secret" } }));
      await expect(provider.can.cluster.findNode(target, identity, call)).rejects.toMatchObject({
        disposition,
        code,
        message: expect.stringContaining("no to ***"),
      });
    },
  );

  test("that says nothing is given up in time", async () => {
    const target = await serve(() => undefined);
    await expect(provider.can.cluster.findNode(target, identity, call)).rejects.toMatchObject({
      family: "silent",
    });
  });

  test("that lists page by page is read to the end, and two nodes that are one machine are an error", async () => {
    const page = (name: string, next?: string) => ({
      metadata: { continue: next },
      items: [{ metadata: { name, uid: name }, status: { nodeInfo: { systemUUID: "u-1" } } }],
    });
    const two = await serve(({ url = "" }) => ({
      status: 200,
      body: url.includes("continue=p2") ? page("n2") : page("n1", "p2"),
    }));
    await expect(provider.can.cluster.findNode(two, identity, call)).rejects.toThrow("n1, n2");
  });

  test("that lists pods page by page is read to the end: those that are over may fill the first pages", async () => {
    const page = (name: string, phase: string, next?: string) => ({
      metadata: { continue: next },
      items: [{ metadata: { name, namespace: "d" }, status: { phase } }],
    });
    const target = await serve(({ method, url = "" }) => {
      if (method === "POST") return { status: 201, body: {} };
      if (!url.includes("spec.nodeName%3Dn1")) return { status: 400, body: {} };
      return { status: 200, body: url.includes("continue=p2") ? page("b", "Running") : page("a", "Succeeded", "p2") };
    });
    expect(await provider.can.nodes.listWorkloads(target, "n1", call)).toEqual(["d/b"]);
    expect(await provider.can.cluster.drain(target, "n1", call, ALL)).toEqual({ remaining: ["d/b"], refused: [] });
  });

  test("whose list of pods never ends is not taken for one of an empty node", async () => {
    const target = await serve(() => ({ status: 200, body: { metadata: { continue: "more" }, items: [] } }));
    await expect(provider.can.nodes.listWorkloads(target, "n1", call)).rejects.toMatchObject({
      family: "odd",
      message: expect.stringContaining("does not end"),
    });
  });

  test.each([
    {},
    { items: {} },
    { items: "none" },
    { items: [1] },
    { items: [{}] },
    { items: [{ metadata: { name: "" } }] },
  ])("that answers %j has not listed its nodes: nobody is gone for that", async (body) => {
    const target = await serve(() => ({ status: 200, body }));
    await expect(provider.can.nodes.listNodes(target, call)).rejects.toMatchObject({ family: "odd" });
    await expect(provider.can.cluster.findNode(target, identity, call)).rejects.toMatchObject({ family: "odd" });
  });

  test("that writes null for an empty list has listed its nodes", async () => {
    const target = await serve(() => ({ status: 200, body: { kind: "NodeList", items: null } }));
    expect(await provider.can.nodes.listNodes(target, call)).toEqual([]);
  });

  test("is asked for the pods of one node alone, whatever its name is", async () => {
    const selectors: (string | null)[] = [];
    const target = await serve(({ url = "" }) => {
      selectors.push(new URL(url, "http://c1").searchParams.get("fieldSelector"));
      return { status: 200, body: { items: [] } };
    });
    for (const name of ["n1.example", "n1,spec.nodeName!=n1", "a\\b"])
      await provider.can.nodes.listWorkloads(target, name, call);
    expect(selectors).toEqual([
      "spec.nodeName=n1.example",
      "spec.nodeName=n1\\,spec.nodeName!\\=n1",
      "spec.nodeName=a\\\\b",
    ]);
  });

  test("that does not speak HTTP is told from one that does not answer", async () => {
    const target = await serve(() => undefined);
    server?.removeAllListeners("connection");
    server?.on("connection", (socket) => socket.end("SSH-2.0-OpenSSH_9.6\r\n"));
    await expect(provider.can.nodes.listNodes(target, call)).rejects.toMatchObject({
      family: "odd",
      message: expect.stringContaining("not HTTP"),
    });
  });

  test("that does not publish how to join it cannot be joined", async () => {
    const target = await serve(() => ({ status: 404, body: {} }));
    await expect(provider.can.cluster.mintJoin(target, { id: "abcdef", lifetime: minutes(5) }, call)).rejects.toThrow(
      "cluster-info",
    );
  });

  const pod = (name: string, more: object = {}, spec: object = {}) => ({
    metadata: {
      name,
      namespace: "d",
      uid: `uid-${name}`,
      ownerReferences: [{ kind: "ReplicaSet", controller: true }],
      ...more,
    },
    spec,
    status: { phase: "Running" },
  });
  const podOf = ({ url = "" }: IncomingMessage) => /pods\/([^/]+)\/eviction/.exec(url)?.[1] ?? "";

  test("that refuses some evictions hears of all the others, and is quoted: a budget with its own message", async () => {
    const refusals: Readonly<Record<string, object>> = {
      budget: {
        code: 429,
        message: "Cannot evict pod as it would violate the pod's disruption budget.",
        details: {
          causes: [
            {
              reason: "DisruptionBudget",
              message: "The disruption budget web needs 3 healthy pods and has 3 currently",
            },
          ],
        },
      },
      busy: { code: 429, message: "too many requests, please try again later" },
      two: {
        code: 500,
        message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
      },
      ending: { code: 403, message: "unable to create new content in namespace d because it is being terminated" },
      other: { code: 409, message: "the UID in the precondition does not match the UID in record" },
    };
    const evicted: string[] = [];
    const names = [...Object.keys(refusals), "fine", "gone"];
    const target = await serve((request) => {
      if (request.method !== "POST") return { status: 200, body: { items: names.map((name) => pod(name)) } };
      const name = podOf(request);
      const refusal = refusals[name] as { code: number } | undefined;
      if (refusal) return { status: refusal.code, body: refusal };
      evicted.push(name);
      return name === "gone" ? { status: 404, body: {} } : { status: 201, body: {} };
    });
    const { remaining, refused } = await provider.can.cluster.drain(target, "n1", call, ALL);
    expect(remaining).toHaveLength(7);
    expect(evicted.toSorted()).toEqual(["fine", "gone"]);
    expect(refused.map(({ pod: name, by, why }) => [name, by, why])).toEqual([
      ["d/budget", "disruption_budget", expect.stringContaining("The disruption budget web needs 3 healthy pods")],
      ["d/busy", "cluster", expect.stringContaining("too many requests")],
      ["d/two", "cluster", expect.stringContaining("more than one PodDisruptionBudget")],
      ["d/ending", "cluster", expect.stringContaining("being terminated")],
      ["d/other", "cluster", expect.stringContaining("does not match")],
    ]);
  });

  test("is asked for several evictions at once, each of the very pod that was listed", async () => {
    const waiting: (() => void)[] = [];
    const bodies: unknown[] = [];
    const names = Array.from({ length: 12 }, (_, index) => `p${index}`);
    server = createServer((request, response) => {
      if (request.method === "GET") return void response.end(JSON.stringify({ items: names.map((name) => pod(name)) }));
      let text = "";
      request.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      request.on("end", () => {
        bodies.push(JSON.parse(text));
        waiting.push(() => response.writeHead(201).end("{}"));
        // None of the first ten is answered before all of them have been asked.
        if (bodies.length === 10 || bodies.length === 12) for (const answer of waiting.splice(0)) answer();
      });
    });
    await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const target = { name: "c1", apiUrl: `http://127.0.0.1:${port}`, ca: null, credentials: { token: "t" } };
    expect((await provider.can.cluster.drain(target, "n1", call, ALL)).refused).toEqual([]);
    expect(bodies).toHaveLength(12);
    expect(bodies).toContainEqual(
      expect.objectContaining({ kind: "Eviction", deleteOptions: { preconditions: { uid: "uid-p3" } } }),
    );
  });

  test("keeps bare pods and local data where nobody asked for them to go", async () => {
    const evicted: string[] = [];
    const items = [
      pod("web"),
      pod("bare", { ownerReferences: [] }),
      pod("owned", { ownerReferences: [{ kind: "Workflow" }] }),
      pod("cache", {}, { volumes: [{ name: "c", emptyDir: {} }] }),
      pod("going", { ownerReferences: [], deletionTimestamp: "2026-01-01T00:00:00Z" }),
    ];
    const target = await serve((request) => {
      if (request.method === "POST") evicted.push(podOf(request));
      return { status: request.method === "POST" ? 201 : 200, body: { items } };
    });
    const drain = (scope: { barePods: boolean; localData: boolean }) =>
      provider.can.cluster.drain(target, "n1", call, scope);
    const spared = await drain({ barePods: false, localData: false });
    expect(evicted.splice(0)).toEqual(["web"]);
    expect(spared.remaining).toHaveLength(5);
    expect(await provider.can.nodes.listGoing(target, "n1", call)).toEqual(["d/going"]);
    expect(spared.refused).toEqual([
      { pod: "d/bare", by: "bare", why: "" },
      { pod: "d/owned", by: "bare", why: "" },
      { pod: "d/cache", by: "local_data", why: "" },
    ]);
    await drain({ barePods: true, localData: false });
    expect(evicted.splice(0).toSorted()).toEqual(["bare", "owned", "web"]);
    await drain(ALL);
    expect(evicted.toSorted()).toEqual(["bare", "cache", "owned", "web"]);
  });

  test("that lets us in no more ends a drain, and is not a refusal of each pod", async () => {
    const target = await serve(({ method }) => ({
      status: method === "POST" ? 401 : 200,
      body: { items: [pod("p")] },
    }));
    await expect(provider.can.cluster.drain(target, "n1", call, ALL)).rejects.toMatchObject({
      code: "credentials_rejected",
    });
  });

  const clusterInfo = (ca: string) => ({
    data: {
      kubeconfig: `clusters: [{ cluster: { server: 'https://k:6443', certificate-authority-data: ${Buffer.from(ca).toString("base64")} } }]`,
    },
  });

  test("that lets only strangers read cluster-info is asked as one", async () => {
    const asked: string[] = [];
    const target = await serve(({ method, url = "", headers }) => {
      const who = headers.authorization === undefined ? "stranger" : "user";
      asked.push(`${who}: ${method} ${url.split("/").at(-1)}`);
      if (!url.endsWith("cluster-info")) return { status: 201, body: {} };
      return who === "user"
        ? { status: 403, body: { message: "forbidden" } }
        : { status: 200, body: clusterInfo(CERTIFICATE) };
    });
    const material = await provider.can.cluster.mintJoin(target, { id: "abcdef", lifetime: minutes(5) }, call);
    expect(material.endpoint).toBe("k:6443");
    expect(asked).toEqual(["user: GET cluster-info", "stranger: GET cluster-info", "user: POST secrets"]);
  });

  test("that has a token of the id already, of which nobody knows the secret, is given another one in its place", async () => {
    const asked: string[] = [];
    const target = await serve(({ method, url = "" }) => {
      if (url.endsWith("cluster-info")) return { status: 200, body: clusterInfo(CERTIFICATE) };
      asked.push(`${method} ${url.split("/").at(-1)}`);
      return { status: asked.length === 1 ? 409 : 200, body: {} };
    });
    await provider.can.cluster.mintJoin(target, { id: "abcdef", lifetime: minutes(5) }, call);
    expect(asked).toEqual(["POST secrets", "DELETE bootstrap-token-abcdef", "POST secrets"]);
  });

  test("tells what its user may not do; what it does not tell counts as allowed", async () => {
    const target = await serve(({ method, url = "" }) => {
      if (url.includes("/nodes")) return { status: 403, body: { message: "forbidden" } };
      if (url.includes("cluster-info")) return { status: 404, body: {} };
      return method === "POST" ? { status: 201, body: { status: { allowed: false } } } : undefined;
    });
    expect((await provider.can.clusterAccess.probe(target, call)).missing).toEqual(Object.keys(CLUSTER_RIGHTS));
    server?.close();
    const open = await serve(({ method, url = "" }) => {
      if (url.includes("/nodes")) return { status: 200, body: { items: [] } };
      if (url.includes("cluster-info")) return { status: 403, body: { message: "forbidden" } };
      return method === "POST" ? { status: 404, body: {} } : undefined;
    });
    expect(await provider.can.clusterAccess.probe(open, call)).toEqual({ missing: ["read_cluster_info"] });
  });

  test("hears whom we act as, and whom the certificate is to name", async () => {
    let heard: IncomingMessage["headers"] = {};
    const target = await serve(({ headers }) => {
      heard = headers;
      return { status: 200, body: { items: [] } };
    });
    const actsAs = { user: "kim", uid: "7", groups: ["ops", "night"], extra: { "a/b": ["c"] } };
    await provider.can.nodes.listNodes({ ...target, actsAs }, call);
    expect(heard).toMatchObject({
      "impersonate-user": "kim",
      "impersonate-uid": "7",
      "impersonate-group": "ops, night",
      "impersonate-extra-a%2fb": "c",
    });
  });

  test("whose certificate the kubeconfig does not trust is told from one that does not answer, and is sent nothing", async () => {
    let asked = 0;
    server = createHttpsServer({ cert: CERTIFICATE, key: KEY }, (_, response) => {
      asked += 1;
      response.end('{"items":[]}');
    });
    await new Promise<void>((resolve) => server?.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const target = { name: "c1", apiUrl: `https://127.0.0.1:${port}`, ca: null, credentials: { token: "t" } };
    await expect(provider.can.nodes.listNodes(target, call)).rejects.toMatchObject({
      code: "certificate_untrusted",
      family: "unproven",
      message: expect.stringContaining("millwright cluster update c1 --kubeconfig"),
    });
    expect(asked).toBe(0);
  });
});

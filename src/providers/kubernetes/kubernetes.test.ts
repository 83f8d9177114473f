import { createServer, type IncomingMessage, type Server } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import { type Duration, milliseconds, minutes } from "../../kernel/time/duration.ts";
import { newBootstrapToken, readClusterInfo } from "./join-material.ts";
import { targetOfKubeconfig } from "./kubeconfig.ts";
import { createKubernetesProvider } from "./kubernetes-provider.ts";
import { matchOf, mustLeave } from "./nodes.ts";

const call = { signal: new AbortController().signal, subject: "test", mayTouchDevice: (wanted: Duration) => wanted };
const kubeconfig = (user: string, cluster = "server: https://10.0.0.1:6443/") => `
apiVersion: v1
kind: Config
current-context: a
contexts: [{ name: a, context: { cluster: k, user: u } }]
clusters: [{ name: k, cluster: { ${cluster} } }]
users: [{ name: u, user: { ${user} } }]
`;

describe("a kubeconfig", () => {
  test("with a token, or with a certificate, is a target", () => {
    expect(targetOfKubeconfig("c1", kubeconfig("token: abc"))).toEqual({
      name: "c1",
      apiUrl: "https://10.0.0.1:6443",
      ca: null,
      credentials: { token: "abc" },
    });
    const base64 = Buffer.from("PEM").toString("base64");
    const text = kubeconfig(
      `client-certificate-data: ${base64}, client-key-data: ${base64}`,
      `server: https://k, certificate-authority-data: ${base64}`,
    );
    expect(targetOfKubeconfig("c1", text)).toMatchObject({
      ca: "PEM",
      credentials: { certificate: "PEM", key: "PEM" },
    });
  });

  test.each([
    ["exec: { command: aws, args: [secret] }", undefined, "exec is not taken"],
    ["tokenFile: /etc/secret", undefined, "tokenFile is not taken"],
    ["client-certificate: /etc/secret.pem", undefined, "give client-certificate-data"],
    ["token: secret", "server: https://k, insecure-skip-tls-verify: true", "insecure-skip-tls-verify"],
    ["token: secret", "server: 'file:///etc/secret'", "must be an http or https address"],
  ])("with %s is refused, and its secrets are not repeated", (user, cluster, expected) => {
    const refused = () => targetOfKubeconfig("c1", kubeconfig(user, cluster));
    expect(refused).toThrow(expected);
    expect(refused).not.toThrow("secret");
  });

  test("that is no YAML is refused without being quoted", () => {
    expect(() => targetOfKubeconfig("c1", "token: [secret")).toThrow(/^kubeconfig: is not YAML$/);
  });
});

describe("a node", () => {
  const node = (nodeInfo: object, more: object = {}) => ({ status: { nodeInfo, ...more } });
  const identity = { systemUuid: "0e9b0c3e-6a1c-4b53-9d1e-0a5f6d1c2b3a", serial: "S1", addresses: ["10.0.0.5"] };
  const addresses = [
    { type: "Hostname", address: "10.0.0.9" },
    { type: "InternalIP", address: "10.0.0.5" },
  ];

  test("is the machine by its system UUID, in either byte order", () => {
    expect(matchOf(node({ systemUUID: identity.systemUuid.toUpperCase() }), identity)).toBe("system_uuid");
    expect(matchOf(node({ systemUUID: "3e0c9b0e-1c6a-534b-9d1e-0a5f6d1c2b3a" }), identity)).toBe("system_uuid");
  });

  test("of another system UUID is another machine, even at the same address", () => {
    expect(
      matchOf(node({ systemUUID: "ffffffff-6a1c-4b53-9d1e-0a5f6d1c2b3a" }, { addresses }), identity),
    ).toBeUndefined();
  });

  test("is the machine by its address only where nothing better is known, and never by its name", () => {
    expect(matchOf(node({}, { addresses }), { ...identity, systemUuid: null })).toBe("address");
    const named = { metadata: { name: "m-1" }, status: { addresses: [{ type: "Hostname", address: "m-1" }] } };
    expect(matchOf(named, { systemUuid: null, serial: null, addresses: ["m-1"] })).toBeUndefined();
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
  const tokens = Array.from({ length: 50 }, newBootstrapToken);
  for (const { id, secret } of tokens) expect(`${id}.${secret}`).toMatch(/^[a-z0-9]{6}\.[a-z0-9]{16}$/);
  expect(new Set(tokens.map(({ secret }) => secret)).size).toBe(50);
});

test("a cluster tells where nodes reach it, with the usual port where it names none", () => {
  const info = (server: string) =>
    readClusterInfo(`clusters: [{ cluster: { server: '${server}', certificate-authority-data: UEVN } }]`);
  expect(info("https://k:6443")).toEqual({ endpoint: "k:6443", ca: "PEM" });
  expect(info("https://k")?.endpoint).toBe("k:443");
  expect(readClusterInfo("clusters: []")).toBeUndefined();
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
    expect(await provider.can.cluster.drain(target, "n1", call)).toEqual({ remaining: ["d/b"], refused: [] });
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
    await expect(provider.can.cluster.mintJoin(target, minutes(5), call)).rejects.toThrow("cluster-info");
  });

  test.each([
    ["disruption_budget", "Cannot evict pod as it would violate the pod's disruption budget."],
    ["cluster", "too many requests, please try again later"],
  ])("that refuses an eviction (%s) keeps the pod on the list, and says why: %s", async (by, why) => {
    const target = await serve(({ method }) =>
      method === "POST"
        ? { status: 429, body: { message: why } }
        : { status: 200, body: { items: [{ metadata: { name: "p", namespace: "d" }, status: { phase: "Running" } }] } },
    );
    expect(await provider.can.cluster.drain(target, "n1", call)).toEqual({
      remaining: ["d/p"],
      refused: [{ pod: "d/p", by, why }],
    });
  });
});

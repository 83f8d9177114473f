import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import type { BmcTarget } from "../../../src/capabilities/bmc-target.ts";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import { createRedfishClient, type RedfishClient } from "../../../src/providers/redfish/client.ts";
import { type BmcGateway, createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";

/** What a simulator of well-behaved devices does not do on the wire. */
type Answering = (request: IncomingMessage, response: ServerResponse) => void;

const cleanUps: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function listening(server: Server | ReturnType<typeof createTcpServer>): Promise<BmcTarget> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUps.push(() => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as AddressInfo;
  return {
    address: "127.0.0.1",
    port,
    scheme: "http",
    username: "root",
    password: "canary-4711",
    trust: { mode: "off" },
  };
}

/** A BMC without sessions that answers everything but its root as told. */
async function aBmc(answer: Answering, root = "{}") {
  const requests: { method: string; path: string; connection: Socket; authorization: string | undefined }[] = [];
  const server = createServer((request, response) => {
    requests.push({
      method: request.method ?? "",
      path: request.url ?? "",
      connection: request.socket,
      authorization: request.headers.authorization,
    });
    if (request.url === "/redfish/v1/") response.end(root);
    else answer(request, response);
  });
  cleanUps.push(() => server.closeAllConnections());
  return { target: await listening(server), requests, server };
}

function aClient(
  options: { largestAnswer?: number; plainHttp?: boolean } = {},
): RedfishClient & { readonly gateway: BmcGateway } {
  const gateway = createBmcGateway();
  const client = createRedfishClient({ gateway, ...options });
  cleanUps.push(() => client.close());
  return { ...client, gateway };
}

const thing = "/redfish/v1/thing";

test("nothing is sent without TLS unless that is allowed: neither a request, nor an upload, nor a sign-in", async () => {
  const { target, requests, server } = await aBmc((_request, response) => response.end("{}"));
  let connections = 0;
  server.on("connection", () => {
    connections += 1;
  });
  const { get, post, stream } = aClient({ plainHttp: false });
  const refused = { code: "plain_http_not_allowed", disposition: "retry" };
  await expect(get(target, thing, aCall())).rejects.toMatchObject(refused);
  await expect(post(target, thing, {}, aCall())).rejects.toMatchObject(refused);
  await expect(stream(target, thing, aCall())).rejects.toMatchObject(refused);
  expect([requests, connections]).toEqual([[], 0]);
  await aClient({ plainHttp: true }).get(target, thing, aCall());
  expect(requests.length).toBeGreaterThan(0);
});

test("a redirect is refused, and nothing is sent to where it leads", async () => {
  const elsewhere = await aBmc((_request, response) => response.end("{}"));
  const { target } = await aBmc((_request, response) =>
    response.writeHead(302, { location: `http://127.0.0.1:${elsewhere.target.port}${thing}` }).end(),
  );
  await expect(aClient().get(target, thing, aCall())).rejects.toMatchObject({
    disposition: "fail",
    family: "odd",
    status: 302,
  });
  expect(elsewhere.requests).toEqual([]);
});

test("an answer beyond the limit is given up, not kept in memory", async () => {
  const { target } = await aBmc((_request, response) => {
    response.writeHead(200);
    const pour = () => {
      while (!response.destroyed && response.write("x".repeat(65_536)));
    };
    response.on("drain", pour);
    pour();
  });
  await expect(aClient({ largestAnswer: 100_000 }).get(target, thing, aCall())).rejects.toMatchObject({
    disposition: "fail",
    family: "odd",
    message: expect.stringContaining("larger than 100000 bytes"),
  });
});

test("an answer that ends in the middle is a transport failure", async () => {
  const { target } = await aBmc((_request, response) => {
    response.writeHead(200, { "content-length": 100 });
    response.write('{"a":');
    response.socket?.end();
  });
  await expect(aClient().get(target, thing, aCall())).rejects.toMatchObject({
    disposition: "retry",
    family: "silent",
  });
});

test("something that does not speak HTTP is told from something that does not answer", async () => {
  const server = createTcpServer((socket) => {
    socket.on("error", () => undefined).write("SSH-2.0-OpenSSH_9.6\r\n", () => socket.destroySoon());
  });
  const target = await listening(server);
  await expect(aClient().get(target, thing, aCall())).rejects.toMatchObject({
    disposition: "retry",
    family: "odd",
  });
});

test("a port where nobody listens is unreachable", async () => {
  const server = createServer();
  const target = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  for (const scheme of ["http", "https"] as const) {
    await expect(aClient().get({ ...target, scheme }, thing, aCall())).rejects.toMatchObject({
      disposition: "retry",
      family: "silent",
      message: expect.stringContaining("ECONNREFUSED"),
    });
  }
});

test("HTTPS to something that speaks plain HTTP is unreachable, and the password stays here", async () => {
  const { target, requests } = await aBmc((_request, response) => response.end("{}"));
  await expect(aClient().get({ ...target, scheme: "https" }, thing, aCall())).rejects.toMatchObject({
    family: "silent",
  });
  expect(requests).toEqual([]);
});

test("reads use one connection again and again; each command has its own", async () => {
  const { target, requests } = await aBmc((_request, response) => response.end("{}"));
  const client = aClient();
  await client.get(target, thing, aCall());
  await client.get(target, thing, aCall());
  await client.post(target, thing, {}, aCall());
  await client.post(target, thing, {}, aCall());
  await client.get(target, thing, aCall());
  const connections = (method: string) =>
    new Set(requests.filter((request) => request.method === method).map(({ connection }) => connection));
  expect(connections("GET").size).toBe(1);
  expect(connections("POST").size).toBe(2);
  expect([...connections("GET")].filter((connection) => connections("POST").has(connection))).toEqual([]);
});

test("a kept connection that the BMC closed meanwhile is not noticed by the caller", async () => {
  let cut = false;
  const { target } = await aBmc((request, response) => {
    if (cut) {
      cut = false;
      request.socket.destroy();
    } else response.end('{"ok":true}');
  });
  const client = aClient();
  await client.get(target, thing, aCall());
  cut = true;
  expect((await client.get(target, thing, aCall())).resource).toEqual({ ok: true });
});

test("a command is never repeated by itself, however its connection ends", async () => {
  const { target, requests } = await aBmc((request) => request.socket.destroy());
  await expect(aClient().post(target, thing, {}, aCall())).rejects.toMatchObject({
    disposition: "retry",
    family: "silent",
  });
  expect(requests.filter(({ method }) => method === "POST")).toHaveLength(1);
});

test("the service root is read without credentials, all else with them", async () => {
  const { target, requests } = await aBmc((_request, response) => response.end("{}"));
  await aClient().get(target, thing, aCall());
  expect(requests.map(({ path, authorization }) => [path, authorization !== undefined])).toEqual([
    ["/redfish/v1/", false],
    [thing, true],
  ]);
});

test("a request that is told to stop leaves neither a connection nor a place taken", async () => {
  const { target, server } = await aBmc(() => undefined);
  const client = aClient();
  const stop = new AbortController();
  const asked = client.get(target, thing, aCall({ signal: stop.signal }));
  server.on("request", ({ url }) => url === thing && stop.abort());
  await expect(asked).rejects.toMatchObject({ disposition: "retry" });
  expect(client.gateway.status(target)).toMatchObject({ inFlight: 0, waiting: 0, breaker: "closed" });
});

test("neither password nor token is in a failure, in whatever spelling the BMC repeats them", async () => {
  const password = 'can"ary/4711 &<ß>';
  const token = "token+canary/0815==";
  const basic = Buffer.from(`root:${password}`).toString("base64");
  const plain = [password, encodeURIComponent(password), `Basic ${basic}`, token].join(" ");
  const repeats = [plain, JSON.stringify({ error: { message: plain } }), JSON.stringify({ sent: password, token })];
  const answers = [...repeats];
  const { target } = await aBmc(({ method }, response) => {
    if (method === "POST") response.writeHead(201, { "x-auth-token": token }).end("{}");
    else response.writeHead(400).end(answers.shift());
  }, '{"Links":{"Sessions":{"@odata.id":"/redfish/v1/SessionService/Sessions"}}}');
  const client = aClient();
  for (const _ of repeats) {
    const failure: unknown = await client.get({ ...target, password }, thing, aCall()).catch((error: unknown) => error);
    expect(failure).toMatchObject({ family: "declines", status: 400, message: expect.stringContaining("***") });
    expect((failure as Error).message).not.toMatch(new RegExp(`ary|4711|0815|${basic.slice(0, 12)}`));
  }
});

import { type IncomingHttpHeaders, request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { SystemService } from "../../../contract/millwright/v1/system_pb.js";
import { SAFE_HEADERS } from "../../../src/api/transport/browsers/safe-headers.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type ApiUnderTest, startApi } from "./api-under-test.ts";

let api: ApiUnderTest;
let handled = 0;
beforeAll(async () => {
  api = await startApi({
    // As with auth.mode off: nobody is asked for credentials.
    authenticate: async () => ({ name: null, roles: ["admin"], address: null }),
    browsers: { hosts: ["mw.example"], origins: [] },
    routes: (router) =>
      void router.service(SystemService, {
        getSystem() {
          handled += 1;
          return {};
        },
      }),
    http(app) {
      app.get("/healthz", async () => ({ status: "alive" }));
      app.get("/metrics", async () => "a_metric 1\n");
      app.post("/api/v1/anything", async () => {
        handled += 1;
        return {};
      });
      app.get("/api/v1/broken", async () => {
        throw new Error("a bug");
      });
    },
  });
});
afterAll(() => api.close());

const RPC = "/millwright.v1.SystemService/GetSystem";
const JSON_CALL = { "content-type": "application/json" };

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

function send(method: string, path: string, headers: Record<string, string> = {}, body = ""): Promise<Answer> {
  const { hostname, port } = new URL(api.httpUrl);
  return new Promise((resolve, reject) => {
    const sending = request({ hostname, port, method, path, headers }, (response) => {
      const { statusCode: status = 0, headers: got } = response;
      text(response).then((read) => resolve({ status, headers: got, body: read }), reject);
    });
    sending.on("error", reject).end(body);
  });
}

/** One request over HTTP/2, with what came back. */
function sendHttp2(headers: Record<string, string>): Promise<Record<string, unknown>> {
  const session = connectHttp2(`http://${api.grpcAddress}`);
  return new Promise((resolve, reject) => {
    session.on("error", reject);
    const stream = session.request(headers);
    stream.on("response", (got) => {
      stream.resume().on("close", () => session.close(() => resolve(got)));
    });
    stream.on("error", reject).end();
  });
}

describe("a page of a stranger", () => {
  test("calls nothing, with a bearer or without, and nothing is done before it is refused", async () => {
    const before = handled;
    const foreign = { ...JSON_CALL, origin: "https://evil.example" };
    const rpc = await send("POST", RPC, foreign, "{}");
    expect(rpc).toMatchObject({ status: 403 });
    expect(JSON.parse(rpc.body)).toMatchObject({ code: "permission_denied" });
    expect((await send("POST", RPC, { ...foreign, authorization: "Bearer x" }, "{}")).status).toBe(403);
    const rest = await send("POST", "/api/v1/anything", foreign, "{}");
    expect(rest).toMatchObject({ status: 403 });
    expect(JSON.parse(rest.body)).toEqual({ detail: expect.stringContaining("evil.example") });
    expect((await send("OPTIONS", RPC, foreign)).headers).not.toHaveProperty("access-control-allow-origin");
    expect(handled).toBe(before);
  });

  test("calls nothing over HTTP/2", async () => {
    const before = handled;
    const call = {
      ":method": "POST",
      ":path": RPC,
      "content-type": "application/grpc",
      origin: "https://evil.example",
    };
    expect(await sendHttp2(call)).toMatchObject({ ":status": 200, "grpc-status": "7" });
    expect(await sendHttp2({ ...call, "content-type": "application/json" })).toMatchObject({ ":status": 403 });
    expect(handled).toBe(before);
  });

  test("calls nothing by a name of its own that resolves to us", async () => {
    const before = handled;
    const rebound = { ...JSON_CALL, host: "evil.example", origin: "http://evil.example" };
    expect((await send("POST", RPC, rebound, "{}")).status).toBe(403);
    expect((await send("POST", RPC, { ...JSON_CALL, host: "evil.example" }, "{}")).status).toBe(403);
    expect((await send("GET", "/metrics", { host: "evil.example" })).status).toBe(403);
    expect(handled).toBe(before);
    expect((await send("GET", "/healthz", { host: "evil.example" })).status).toBe(200);
  });

  test("leaves a line in the log", async () => {
    await send("POST", RPC, { ...JSON_CALL, origin: "https://evil.example" }, "{}");
    const { fields } = await api.log.line(({ message }) => message === "request refused");
    expect(fields).toMatchObject({ method: expect.stringContaining("POST"), address: "127.0.0.1" });
  });
});

test("our own pages, clients without a page, and configured names are served", async () => {
  for (const headers of [{}, { host: "mw.example" }, { host: "mw.example", origin: "https://mw.example" }])
    expect((await send("POST", RPC, { ...JSON_CALL, ...headers }, "{}")).status).toBe(200);
  const transport = createConnectTransport({ baseUrl: api.httpUrl, httpVersion: "1.1" });
  await createClient(SystemService, transport).getSystem({});
  await createClient(SystemService, api.grpc()).getSystem({});
});

describe("safe headers", () => {
  const expected = Object.entries(SAFE_HEADERS);
  const lacking = (headers: object) => expected.filter(([name]) => !Object.hasOwn(headers, name)).map(([name]) => name);

  test.each<[string, string, string, Record<string, string>, number]>([
    ["an RPC", "POST", RPC, JSON_CALL, 200],
    ["an RPC that is refused", "GET", RPC, {}, 405],
    ["a refused page", "POST", RPC, { ...JSON_CALL, origin: "https://evil.example" }, 403],
    ["a probe", "GET", "/healthz", {}, 200],
    ["metrics", "GET", "/metrics", {}, 200],
    ["an unknown path", "GET", "/nothing/here", {}, 404],
    ["a path that is none", "GET", "/%ff", {}, 400],
    ["a bug", "GET", "/api/v1/broken", {}, 500],
    ["an expectation", "GET", "/healthz", { expect: "a-miracle" }, 417],
  ])("are on the answer to %s", async (_what, method, path, headers, status) => {
    const answer = await send(method, path, headers, method === "POST" ? "{}" : "");
    expect({ status: answer.status, lacking: lacking(answer.headers) }).toEqual({ status, lacking: [] });
  });

  test.each([
    ["what is no request", "hello\r\n\r\n"],
    ["a request without a host", "GET /healthz HTTP/1.1\r\n\r\n"],
    ["headers that are too large", `GET / HTTP/1.1\r\nhost: localhost\r\nx: ${"a".repeat(20_000)}\r\n\r\n`],
  ])("are on the answer to %s", async (_what, bytes) => {
    const { hostname, port } = new URL(api.httpUrl);
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {}); // the rest of a request that was refused is not read
    socket.write(bytes);
    let said = "";
    for await (const chunk of socket) said += String(chunk);
    expect(said).toMatch(/^HTTP\/1\.1 4\d\d /);
    for (const [name] of expected) expect(said.toLowerCase()).toContain(`\r\n${name}:`);
  });

  test.each<[string, Record<string, string>]>([
    ["a gRPC call", { ":method": "POST", ":path": RPC, "content-type": "application/grpc" }],
    ["an unknown gRPC method", { ":method": "POST", ":path": "/a.B/C", "content-type": "application/grpc" }],
    ["an unknown path", { ":method": "GET", ":path": "/nothing" }],
    ["a refused page", { ":method": "POST", ":path": RPC, origin: "https://evil.example" }],
  ])("are on the answer to %s over HTTP/2", async (_what, headers) => {
    expect(lacking(await sendHttp2(headers))).toEqual([]);
  });
});

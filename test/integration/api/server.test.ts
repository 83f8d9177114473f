import { execFile } from "node:child_process";
import { once } from "node:events";
import { connect, constants, type IncomingHttpHeaders } from "node:http2";
import { connect as connectSocket, createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, type ConnectRouter, createClient } from "@connectrpc/connect";
import { createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterEach, describe, expect, test } from "vitest";
import { Forge, PowerShelfMaintenanceRequestSchema } from "../../../contract/forge/forge_pb.js";
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../../../contract/grpc/health/v1/health_pb.js";
import { ErrorInfoSchema } from "../../../contract/millwright/v1/error_info_pb.js";
import { SystemService } from "../../../contract/millwright/v1/system_pb.js";
import { WatchService } from "../../../contract/millwright/v1/watch_pb.js";
import { callerKey, requestIdKey } from "../../../src/api/transport/interceptors.ts";
import { startApiServers } from "../../../src/api/transport/server.ts";
import { AppError } from "../../../src/kernel/errors.ts";
import { milliseconds, seconds } from "../../../src/kernel/time/duration.ts";
import { type ApiUnderTest, failureOf, startApi } from "./api-under-test.ts";

let open: ApiUnderTest[] = [];
afterEach(async () => {
  await Promise.all(open.map((api) => api.close()));
  open = [];
});

async function api(options: Parameters<typeof startApi>[0] = {}): Promise<ApiUnderTest> {
  const started = await startApi(options);
  open.push(started);
  return started;
}

const postJson = (url: string, body: string | Uint8Array<ArrayBuffer>, contentType = "application/json") =>
  fetch(url, { method: "POST", headers: { "content-type": contentType }, body });

describe("one handler, every protocol", () => {
  const whoAmI = {
    routes: (router: ConnectRouter) =>
      void router.service(SystemService, {
        getSystem: (_, context) => ({
          version: "1",
          caller: { name: context.values.get(callerKey).name ?? "", roles: [...context.values.get(callerKey).roles] },
        }),
      }),
  };

  test("answers gRPC over HTTP/2 without TLS", async () => {
    const { grpc } = await api(whoAmI);
    const { version, caller } = await createClient(SystemService, grpc()).getSystem({});
    expect([version, caller?.name, caller?.roles]).toEqual(["1", "tester", ["admin"]]);
  });

  test("answers JSON posted with nothing but an HTTP client", async () => {
    const { httpUrl } = await api(whoAmI);
    const response = await postJson(`${httpUrl}/millwright.v1.SystemService/GetSystem`, "{}");
    expect([response.status, await response.json()]).toEqual([
      200,
      { version: "1", caller: { name: "tester", roles: ["admin"] } },
    ]);
  });

  test("answers gRPC-Web over HTTP/1.1", async () => {
    const { httpUrl } = await api(whoAmI);
    const web = createGrpcWebTransport({ baseUrl: httpUrl, httpVersion: "1.1" });
    expect((await createClient(SystemService, web).getSystem({})).version).toBe("1");
  });

  test("serves REST beside it on the same port", async () => {
    const { httpUrl } = await api({ http: (app) => void app.get("/healthz", async () => "ok") });
    expect(await (await fetch(`${httpUrl}/healthz`)).text()).toBe("ok");
  });
});

/** The detail of an error as Connect shows it in JSON. */
const errorInfo = (kind: string, field = "") => ({
  type: "millwright.v1.ErrorInfo",
  value: expect.any(String),
  debug: { kind, ...(field !== "" && { field }) },
});

describe("bad input", () => {
  const shelves = {
    routes: (router: ConnectRouter) => void router.service(Forge, { setPowerShelfMaintenance: () => ({}) }),
  };
  const path = "forge.Forge/SetPowerShelfMaintenance";

  test.each([
    ["no JSON at all", "{", "JSON", ""],
    ["a field of the wrong type", '{"operation": {}}', "operation", "operation"],
    ["a text for a list", '{"powerShelfIds": "one"}', "power_shelf_ids", "power_shelf_ids"],
    [
      "an unknown enum word",
      '{"operation": "POWER_SHELF_MAINTENANCE_OPERATION_EXPLODE"}',
      "operation must be one of POWER_SHELF_MAINTENANCE_OPERATION_UNSPECIFIED, POWER_SHELF",
      "operation",
    ],
    ["a misspelt field", '{"power_shelf_idz": []}', "power_shelf_idz", "power_shelf_idz"],
    ["a misspelt field further down", '{"powerShelfIds": [{"idd": "x"}]}', "idd", "power_shelf_ids.idd"],
    ["a wrong type further down", '{"powerShelfIds": [{"id": 7}]}', "id", "power_shelf_ids.id"],
  ])("%s is refused with a message and a detail that name it", async (_, body, named, field) => {
    const { httpUrl } = await api(shelves);
    const response = await postJson(`${httpUrl}/${path}`, body);
    const answer = (await response.json()) as { code: string; message: string; details: unknown };
    expect([response.status, answer.code]).toEqual([400, "invalid_argument"]);
    expect(answer.message).toContain(named);
    expect(answer.details).toEqual([errorInfo("invalid_argument", field)]);
  });

  test("bytes that are no message are the caller's fault over Connect and gRPC-Web", async () => {
    const { httpUrl } = await api(shelves);
    const garbage = Uint8Array.of(0x0a, 0xff, 0x01);
    const connect = await postJson(`${httpUrl}/${path}`, garbage, "application/proto");
    expect([connect.status, await connect.json()]).toEqual([
      400,
      {
        code: "invalid_argument",
        message: expect.stringContaining("the request is not a valid protobuf message"),
        details: [errorInfo("invalid_argument")],
      },
    ]);
    const framed = Uint8Array.of(0, 0, 0, 0, garbage.length, ...garbage);
    const web = await postJson(`${httpUrl}/${path}`, framed, "application/grpc-web+proto");
    expect(await web.text()).toContain(`grpc-status: ${Code.InvalidArgument}\r\n`);
  });

  test("bytes that are no message are the caller's fault over gRPC", async () => {
    const { grpcAddress } = await api(shelves);
    // The client's idea of the method differs from the server's: it sends a string where a message is expected.
    const wrong = { ...Forge.method.setPowerShelfMaintenance, input: Health.method.check.input };
    const transport = createGrpcTransport({ baseUrl: `http://${grpcAddress}` });
    const failure = await failureOf(
      transport.unary(wrong, undefined, undefined, undefined, { service: "\u0007\u0007\u0007" }),
    );
    expect([failure.code, failure.rawMessage]).toEqual([
      Code.InvalidArgument,
      expect.stringContaining("not a valid protobuf message"),
    ]);
    expect(failure.findDetails(ErrorInfoSchema)).toMatchObject([{ kind: "invalid_argument" }]);
  });

  test("a message above the limit is refused by every protocol, and the server goes on", async () => {
    const { grpc, httpUrl } = await api(shelves);
    const reference = "x".repeat(5 * 1024 * 1024);
    const refused = [
      Code.ResourceExhausted,
      "the request message is larger than the limit of 4194304 bytes; split the request",
    ];
    const client = createClient(Forge, grpc());

    const overGrpc = await failureOf(client.setPowerShelfMaintenance({ reference }));
    expect([overGrpc.code, overGrpc.rawMessage]).toEqual(refused);
    const overJson = await postJson(`${httpUrl}/${path}`, JSON.stringify({ reference }));
    expect([overJson.status, await overJson.json()]).toEqual([
      429,
      { code: "resource_exhausted", message: refused[1], details: [errorInfo("exhausted")] },
    ]);
    const packed = await postJson(
      `${httpUrl}/${path}`,
      toBinary(PowerShelfMaintenanceRequestSchema, create(PowerShelfMaintenanceRequestSchema, { reference })),
      "application/proto",
    );
    expect(packed.status).toBe(429);

    await client.setPowerShelfMaintenance({ reference: "small" });
  });

  test("a method that does not exist is named to gRPC clients", async () => {
    const { grpcAddress } = await api();
    const transport = createGrpcTransport({ baseUrl: `http://${grpcAddress}` });
    const failure = await failureOf(createClient(Forge, transport).deletePowerShelf({}));
    expect([failure.code, failure.rawMessage]).toEqual([
      Code.Unimplemented,
      "this server has no method /forge.Forge/DeletePowerShelf",
    ]);
  });

  test("that answer is one HEADERS frame, which also ends the stream: grpcio takes nothing else for a status", async () => {
    const { grpcAddress } = await api();
    const session = connect(`http://${grpcAddress}`);
    const call = session.request({
      ":method": "POST",
      ":path": "/forge.Forge/SelfDestruct",
      "content-type": "application/grpc",
      te: "trailers",
    });
    call.end(Uint8Array.of(0, 0, 0, 0, 0));
    const [headers, flags] = (await once(call, "response")) as [IncomingHttpHeaders, number];
    expect(headers).toMatchObject({ ":status": 200, "grpc-status": String(Code.Unimplemented) });
    expect(flags & constants.NGHTTP2_FLAG_END_STREAM).not.toBe(0);
    session.close();
  });

  test.each([
    ["GET", undefined, 405, "an RPC is called with POST, and this request is a GET"],
    ["POST", "text/plain", 415, 'Content-Type: application/json .* and this request has "text/plain'],
    ["POST", "application/x-www-form-urlencoded", 415, "Content-Type: application/json"],
  ])("what is no call (%s, %s) is told what one is, in the shape of all errors", async (method, type, status, said) => {
    const { httpUrl } = await api({ routes: (router) => void router.service(SystemService, {}) });
    const response = await fetch(`${httpUrl}/millwright.v1.SystemService/GetSystem`, {
      method,
      ...(type !== undefined && { headers: { "content-type": type }, body: "{}" }),
    });
    expect([response.status, response.headers.get("content-type")]).toEqual([status, "application/json"]);
    const { code, message, details } = (await response.json()) as { code: string; message: string; details: object[] };
    expect([code, message]).toEqual(["invalid_argument", expect.stringMatching(said)]);
    expect(details).toMatchObject([{ type: "millwright.v1.ErrorInfo" }]);
  });

  test.each(["application/json", "application/json; charset=utf-8"])(
    "a stream that is called as %s is told to be one",
    async (type) => {
      const { httpUrl } = await api({ routes: (router) => void router.service(WatchService, {}) });
      const response = await postJson(`${httpUrl}/millwright.v1.WatchService/Watch`, "{}", type);
      expect([response.status, await response.json()]).toMatchObject([
        415,
        {
          code: "invalid_argument",
          message: expect.stringMatching(/^this RPC is a stream: .*application\/connect\+json/),
        },
      ]);
    },
  );

  test("a REST route that refuses a media type keeps its own words", async () => {
    const { httpUrl } = await api({ http: (app) => void app.post("/api/v1/things", async () => "ok") });
    const response = await postJson(`${httpUrl}/api/v1/things`, "a", "text/odd");
    expect([response.status, await response.json()]).toMatchObject([415, { error: { kind: "invalid_argument" } }]);
  });

  test("REST refusals have the one error shape", async () => {
    const { httpUrl } = await api({ http: (app) => void app.post("/api/v1/echo", async ({ body }) => body) });
    const unknown = await fetch(`${httpUrl}/api/v1/nothing?secret=1`);
    expect([unknown.status, await unknown.json()]).toEqual([
      404,
      { error: { kind: "not_found", message: "there is no GET /api/v1/nothing", field: "", next: "" } },
    ]);
    const garbled = await fetch(`${httpUrl}/api/v1/%ff`);
    expect([garbled.status, await garbled.json()]).toMatchObject([
      400,
      { error: { kind: "invalid_argument", field: "" } },
    ]);
    const broken = await postJson(`${httpUrl}/api/v1/echo`, "{");
    expect([broken.status, await broken.json()]).toMatchObject([400, { error: { kind: "invalid_argument" } }]);
    const large = await postJson(`${httpUrl}/api/v1/echo`, JSON.stringify("x".repeat(2 * 1024 * 1024)));
    expect(large.status).toBe(413);
  });
});

describe("errors and the log", () => {
  test("an AppError reaches the caller with the code of the contract, its message and its detail", async () => {
    const fail = () => {
      throw new AppError("failed_precondition", "power shelf ps-1 is being deleted", {
        field: "id",
        next: "millwright power-shelf show ps-1",
      });
    };
    const { grpc } = await api({
      routes: (router) =>
        void router.service(Forge, { deletePowerShelf: fail }).service(SystemService, { getSystem: fail }),
    });
    const overForge = await failureOf(createClient(Forge, grpc()).deletePowerShelf({}));
    const overOurs = await failureOf(createClient(SystemService, grpc()).getSystem({}));
    expect([overForge.code, overOurs.code]).toEqual([Code.InvalidArgument, Code.FailedPrecondition]);
    expect(overForge.rawMessage).toBe("power shelf ps-1 is being deleted");
    expect(overForge.findDetails(ErrorInfoSchema)).toMatchObject([
      { kind: "failed_precondition", field: "id", next: "millwright power-shelf show ps-1" },
    ]);
  });

  test("a bug gives a reference under which the cause is in the log, and nowhere else", async () => {
    const { httpUrl, log } = await api({
      routes: (router) =>
        void router.service(SystemService, {
          getSystem() {
            throw new Error("canary-secret");
          },
        }),
    });
    const response = await postJson(`${httpUrl}/millwright.v1.SystemService/GetSystem`, "{}");
    const text = await response.text();
    const reference = response.headers.get("x-request-id");
    expect(JSON.parse(text)).toMatchObject({
      code: "internal",
      message: `internal error; see the server log, reference ${reference}`,
    });
    expect(text).not.toContain("canary-secret");
    const reported = await log.line(({ level }) => level === "error");
    expect(reported.fields).toMatchObject({
      requestId: reference,
      err: expect.objectContaining({ message: "canary-secret" }),
    });
  });

  test("the request log has method, code, time, caller and the request id that the caller chose, and no body", async () => {
    let seen = "";
    const { grpc, log } = await api({
      routes: (router) =>
        void router.service(Forge, {
          addExpectedPowerShelf(_, { values }) {
            seen = values.get(requestIdKey);
            return {};
          },
        }),
    });
    await createClient(Forge, grpc()).addExpectedPowerShelf(
      { bmcPassword: "canary-secret" },
      { headers: { "x-request-id": "trace-1" } },
    );
    const { fields } = await log.line(({ message }) => message === "request");
    expect(fields).toEqual({
      method: "forge.Forge/AddExpectedPowerShelf",
      code: "ok",
      ms: expect.any(Number),
      address: "127.0.0.1",
      caller: "tester",
      requestId: "trace-1",
    });
    expect(seen).toBe("trace-1");
    expect(JSON.stringify(log.lines)).not.toContain("canary-secret");
  });

  test("a caller who hangs up in the middle of a request is no bug of ours", async () => {
    const begun = Promise.withResolvers<void>();
    const { httpUrl, log, close } = await api({
      routes: (router) => void router.service(WatchService, { async *watch() {} }),
      authenticate: async () => {
        begun.resolve();
        return { name: "tester", roles: ["admin"], address: null };
      },
    });
    const { hostname, port } = new URL(httpUrl);
    const socket = connectSocket(Number(port), hostname);
    const head = [
      "host: localhost",
      "content-type: application/connect+json",
      "connect-protocol-version: 1",
      "content-length: 100",
    ];
    socket.write(`POST /millwright.v1.WatchService/Watch HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n`);
    await begun.promise;
    socket.destroy();
    const { fields } = await log.line(({ message }) => message === "request");
    expect(fields).toMatchObject({ method: "millwright.v1.WatchService/Watch", code: "aborted" });
    await close(); // what else is to be said of it has been said by then
    expect(log.lines.filter(({ level }) => level === "error")).toEqual([]);
  });

  test("calls that never reached a handler are in the log too", async () => {
    const { httpUrl, log } = await api({ routes: (router) => void router.service(SystemService, {}) });
    await postJson(`${httpUrl}/millwright.v1.SystemService/GetSystem`, "{");
    expect((await log.line(({ message }) => message === "request")).fields).toMatchObject({ code: "invalid_argument" });
  });

  test("a caller who is refused never has a message read, and gets the reason", async () => {
    let read = false;
    const { httpUrl, grpc, log } = await api({
      authenticate: async (headers, _peer, method) => {
        if (headers.get("authorization") === "Bearer good") return { name: "ann", roles: [], address: null };
        throw new AppError("unauthenticated", `${method} needs a token`);
      },
      routes: (router) =>
        void router.service(SystemService, {
          getSystem(_, { values }) {
            read = true;
            return { caller: { name: values.get(callerKey).name ?? "" } };
          },
        }),
    });
    const malformed = await postJson(`${httpUrl}/millwright.v1.SystemService/GetSystem`, "{");
    expect([malformed.status, await malformed.json()]).toMatchObject([
      401,
      { code: "unauthenticated", message: "millwright.v1.SystemService/GetSystem needs a token" },
    ]);
    const client = createClient(SystemService, grpc());
    expect((await failureOf(client.getSystem({}))).code).toBe(Code.Unauthenticated);
    expect(read).toBe(false);
    expect((await log.line(({ message }) => message === "request")).fields).toMatchObject({
      code: "unauthenticated",
      caller: null,
    });
    expect((await client.getSystem({}, { headers: { authorization: "Bearer good" } })).caller?.name).toBe("ann");
  });
});

describe("health", () => {
  test("follows its source, for the server and for each service", async () => {
    const { grpc, health } = await api();
    const client = createClient(Health, grpc());
    expect((await client.check({})).status).toBe(ServingStatus.SERVING);
    health.set(false);
    expect((await client.check({ service: "grpc.health.v1.Health" })).status).toBe(ServingStatus.NOT_SERVING);
  });

  test("does not know services that the server does not have", async () => {
    const { grpc } = await api();
    const client = createClient(Health, grpc());
    expect((await failureOf(client.check({ service: "no.Such" }))).code).toBe(Code.NotFound);
    const watch = client.watch({ service: "no.Such" })[Symbol.asyncIterator]();
    expect((await watch.next()).value?.status).toBe(ServingStatus.SERVICE_UNKNOWN);
    await watch.return?.();
  });

  test("a watcher sees the status now and each change", async () => {
    const { grpc, health } = await api();
    const seen: ServingStatus[] = [];
    for await (const { status } of createClient(Health, grpc()).watch({})) {
      seen.push(status);
      if (seen.length === 3) break;
      health.set(!health.isServing());
    }
    expect(seen).toEqual([ServingStatus.SERVING, ServingStatus.NOT_SERVING, ServingStatus.SERVING]);
  });
});

describe("a client that we did not write, through reflection", () => {
  const buf = join(import.meta.dirname, "../../../node_modules/.bin/buf");
  const curl = async (...args: string[]) =>
    (await promisify(execFile)(buf, ["curl", "--http2-prior-knowledge", "--protocol", "grpc", ...args])).stdout;

  test.each(["grpc-v1", "grpc-v1alpha"])("lists services and calls one by %s", async (protocol) => {
    const { grpcAddress } = await api({ routes: (router) => void router.service(Forge, {}) });
    const url = `http://${grpcAddress}`;
    const methods = await curl("--reflect-protocol", protocol, "--list-methods", url);
    expect(methods.split("\n")).toContain("forge.Forge/SetPowerShelfMaintenance");
    expect(methods).toContain("grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
    const checked = await curl(
      "--reflect-protocol",
      protocol,
      "-d",
      '{"service":"forge.Forge"}',
      `${url}/grpc.health.v1.Health/Check`,
    );
    expect(JSON.parse(checked)).toEqual({ status: "SERVING" });
  });
});

describe("closing", () => {
  /** A stream that sends one message and then waits for something that never comes. */
  const stuckWatch = (ended: () => void) => ({
    routes: (router: ConnectRouter) =>
      void router.service(WatchService, {
        async *watch(_, { signal }) {
          signal.addEventListener("abort", ended);
          yield {};
          await new Promise(() => {});
        },
      }),
  });

  test.each(["gRPC", "gRPC-Web"])(
    "ends an open %s stream with UNAVAILABLE, though its handler hangs",
    async (protocol) => {
      const ended = Promise.withResolvers<void>();
      const { grpc, httpUrl, close } = await api({ ...stuckWatch(ended.resolve), closeWithin: seconds(60) });
      const transport = protocol === "gRPC" ? grpc() : createGrpcWebTransport({ baseUrl: httpUrl, httpVersion: "1.1" });
      const stream = createClient(WatchService, transport).watch({})[Symbol.asyncIterator]();
      await stream.next();
      const failed = failureOf(stream.next());
      await close();
      await ended.promise;
      expect((await failed).code).toBe(Code.Unavailable);
    },
  );

  test("lets a call in flight come to its end", async () => {
    const bothEntered = Promise.withResolvers<void>();
    let inside = 0;
    const release = Promise.withResolvers<void>();
    const { grpc, httpUrl, close } = await api({
      routes: (router) =>
        void router.service(SystemService, {
          async getSystem() {
            inside += 1;
            if (inside === 2) bothEntered.resolve();
            await release.promise;
            return { version: "late" };
          },
        }),
      closeWithin: seconds(60),
    });
    const overGrpc = createClient(SystemService, grpc()).getSystem({});
    const overHttp = postJson(`${httpUrl}/millwright.v1.SystemService/GetSystem`, "{}").then((response) =>
      response.json(),
    );
    await bothEntered.promise;
    const closed = close();
    release.resolve();
    expect((await overGrpc).version).toBe("late");
    expect(await overHttp).toEqual({ version: "late" });
    await closed;
  });

  test("cuts off in the end what does not end by itself", async () => {
    const [called, fetched] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const hang = (entered: () => void) => {
      entered();
      return new Promise<never>(() => {});
    };
    const { grpc, httpUrl, close } = await api({
      routes: (router) => void router.service(SystemService, { getSystem: () => hang(called.resolve) }),
      http: (app) => void app.get("/hang", () => hang(fetched.resolve)),
      closeWithin: milliseconds(50),
    });
    const overGrpc = failureOf(createClient(SystemService, grpc()).getSystem({}));
    const overHttp = fetch(`${httpUrl}/hang`).catch((error: Error) => error);
    await Promise.all([called.promise, fetched.promise]);
    await close();
    expect((await overGrpc).code).toBe(Code.Canceled);
    expect(await overHttp).toBeInstanceOf(Error);
  });

  test.each(["gRPC", "HTTP"])("does not wait for the rest of a %s request that was refused", async (protocol) => {
    const { grpc, httpUrl, close } = await api({
      routes: (router) => void router.service(Forge, { setPowerShelfMaintenance: () => ({}) }),
      closeWithin: seconds(60),
    });
    const reference = "x".repeat(5 * 1024 * 1024);
    if (protocol === "gRPC") {
      const failure = await failureOf(createClient(Forge, grpc()).setPowerShelfMaintenance({ reference }));
      expect(failure.code).toBe(Code.ResourceExhausted);
    } else {
      // Without a length known beforehand, so that the limit is met in the middle.
      const body = new Blob([JSON.stringify({ reference })]).stream();
      const headers = { "content-type": "application/json" };
      const init: RequestInit = { method: "POST", headers, body, duplex: "half" };
      expect((await fetch(`${httpUrl}/forge.Forge/SetPowerShelfMaintenance`, init)).status).toBe(429);
    }
    const startedAt = performance.now();
    await close();
    expect(performance.now() - startedAt).toBeLessThan(seconds(30));
  });

  test("can be asked for twice, and nobody is let in afterwards", async () => {
    const { httpUrl, grpc, close } = await api();
    await Promise.all([close(), close()]);
    await expect(fetch(`${httpUrl}/healthz`)).rejects.toThrow();
    expect((await failureOf(createClient(Health, grpc()).check({}))).code).toBe(Code.Unavailable);
  });

  test("a reader who left while it was not reading leaves no handler behind", async () => {
    const cleaned = Promise.withResolvers<void>();
    const { grpc } = await api({
      routes: (router) =>
        void router.service(WatchService, {
          async *watch() {
            try {
              for (;;) yield { message: { case: "bookmark", value: { cursor: "x".repeat(100_000) } } };
            } finally {
              cleaned.resolve();
            }
          },
        }),
    });
    const leave = new AbortController();
    const stream = createClient(WatchService, grpc()).watch({}, { signal: leave.signal })[Symbol.asyncIterator]();
    await stream.next();
    leave.abort();
    await cleaned.promise;
  });
});

describe("starting", () => {
  test.each([
    ["gRPC", "grpc.listen (--grpc-listen or MILLWRIGHT_GRPC_LISTEN)"],
    ["HTTP", "http.listen (--http-listen or MILLWRIGHT_HTTP_LISTEN)"],
  ])("a port in use for %s is named with its setting, and nothing stays open", async (what, names) => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as { port: number };
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const starting = startApiServers({
      grpcListen: { host: "127.0.0.1", port: what === "gRPC" ? port : 0 },
      httpListen: { host: "127.0.0.1", port: what === "HTTP" ? port : 0 },
      routes() {},
      interceptors: [],
      http() {},
      log,
    });
    await expect(starting).rejects.toMatchObject({
      message: `cannot listen on 127.0.0.1:${port} for ${what}: another process listens there already; choose another port`,
      kind: "failed_precondition",
      detail: { next: `set ${names} to another host:port; port 0 takes a free one` },
    });
    await new Promise((resolve) => other.close(resolve));
  });
});

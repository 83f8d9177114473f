import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { AuditService } from "../../../contract/millwright/v1/audit_pb.js";
import { SystemService } from "../../../contract/millwright/v1/system_pb.js";
import { loadConfig } from "../../../src/config.ts";
import { createToken } from "../../../src/store/access/tokens.ts";
import { type Server, startServer } from "../../../src/wiring/server.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { RecordingLog, startApi } from "./api-under-test.ts";

const log = new RecordingLog();
let database: TestDatabase;
let directory: string;
let server: Server;
let token: string;
beforeAll(async () => {
  database = await createTestDatabase();
  directory = mkdtempSync(join(tmpdir(), "millwright-access-"));
  const env = {
    MILLWRIGHT_DATABASE_URL: database.url,
    MILLWRIGHT_DATA_DIR: directory,
    MILLWRIGHT_HTTP_LISTEN: "127.0.0.1:0",
    MILLWRIGHT_GRPC_LISTEN: "127.0.0.1:0",
  };
  const { config } = loadConfig({ env, argv: [], profile: "serve" });
  server = await startServer({ config, log, version: "0.0.0", signal: new AbortController().signal });
  ({ token } = await createToken(database.db, { name: "kim", roles: ["viewer"], createdBy: "test" }));
});
afterAll(async () => {
  await server.stop();
  await database.drop();
  rmSync(directory, { recursive: true });
});

const RPC = "/millwright.v1.SystemService/GetSystem";
const lineOf = async (id: string) => (await log.line(({ fields }) => fields.requestId === id)).fields;
const post = (path: string, headers: Record<string, string>, body = "{}") =>
  fetch(`${server.httpUrl}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body,
  });

describe("one line of the log says who called, from where, and how it ended", () => {
  const seen = (method: string, code: string | number, caller: string | null, requestId: string) => ({
    ...{ method, code, caller, requestId },
    ms: expect.any(Number),
    address: "127.0.0.1",
  });

  test("over gRPC and as JSON alike", async () => {
    const { getSystem } = createClient(SystemService, createGrpcTransport({ baseUrl: `http://${server.grpcAddress}` }));
    await getSystem({}, { headers: { authorization: `Bearer ${token}`, "x-request-id": "grpc-1" } });
    await post(RPC, { authorization: `Bearer ${token}`, "x-request-id": "json-1" });
    for (const id of ["grpc-1", "json-1"]) expect(await lineOf(id)).toEqual(seen(RPC.slice(1), "ok", "kim", id));
  });

  test("over REST", async () => {
    const headers = { authorization: `Bearer ${token}` };
    await fetch(`${server.httpUrl}/api/v1/nodes?token=canary`, { headers: { ...headers, "x-request-id": "rest-1" } });
    expect(await lineOf("rest-1")).toEqual(seen("GET /api/v1/nodes", 422, "kim", "rest-1"));
    await post("/api/v1/nodes", { ...headers, "x-request-id": "rest-2" });
    expect(await lineOf("rest-2")).toMatchObject(seen("POST /api/v1/nodes", 403, "kim", "rest-2"));
  });

  test("of who was not let in, too", async () => {
    const create = "/millwright.v1.TokenService/CreateToken";
    await post(create, { authorization: `Bearer ${token}`, "x-request-id": "refused-1" });
    expect(await lineOf("refused-1")).toEqual(seen(create.slice(1), "permission_denied", "kim", "refused-1"));
    const headers = { authorization: "Bearer mw_canary" };
    await post(RPC, { ...headers, "x-request-id": "nobody-1" });
    expect(await lineOf("nobody-1")).toEqual(seen(RPC.slice(1), "unauthenticated", null, "nobody-1"));
    await fetch(`${server.httpUrl}/api/v1/nodes`, { headers: { ...headers, "x-request-id": "nobody-2" } });
    expect(await lineOf("nobody-2")).toEqual(seen("GET /api/v1/nodes", 401, null, "nobody-2"));
  });

  test("of what is no call, without what follows a path or a query", async () => {
    const method = (name: string, code: string | number) =>
      log.line(({ fields }) => fields.method === name && fields.code === code && fields.address === "127.0.0.1");
    await fetch(`${server.httpUrl}/no/such/canary?key=canary`);
    await method("GET /no/…", 404);
    await fetch(`${server.httpUrl}/%ff/canary`);
    await method("GET /%ff/…", 400);
    await fetch(`${server.httpUrl}${RPC}?canary`);
    await method(`GET ${RPC}`, 405);
    const session = connectHttp2(`http://${server.grpcAddress}`);
    const headers = { ":method": "POST", ":path": "/no.Such/Method", "content-type": "application/grpc" };
    await once(session.request(headers).end().resume(), "close");
    session.close();
    await method("POST /no.Such/Method", "unimplemented");
  });

  test("of refused calls there is a count as well, for auditors, over gRPC, REST and in the log", async () => {
    const auditor = await createToken(database.db, { name: "ada", roles: ["auditor"], createdBy: "test" });
    const headers = { authorization: `Bearer ${auditor.token}` };
    const { listRefusedCalls } = createClient(
      AuditService,
      createGrpcTransport({ baseUrl: `http://${server.grpcAddress}` }),
    );
    const ofKim = () => listRefusedCalls({ filter: "who=kim", orderBy: "calls desc", withTotal: true }, { headers });
    await expect.poll(async () => (await ofKim()).totalSize, { timeout: 20_000 }).toBe(2);
    const seen = { outcome: "refused", who: "kim", address: "127.0.0.1", calls: 1n };
    expect((await ofKim()).refusedCalls).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ ...seen, method: "millwright.v1.TokenService/CreateToken" }),
        expect.objectContaining({ ...seen, method: "POST /api/v1/nodes" }),
      ]),
    );
    const url = `${server.httpUrl}/api/v1/audit/refused-calls?filter=${encodeURIComponent('outcome=sign_in_failed AND who=""')}`;
    const body = (await (await fetch(url, { headers })).json()) as { data: unknown[]; total: number };
    expect(body.total).toBe(2);
    expect(body.data).toContainEqual(expect.objectContaining({ method: "GET /api/v1/nodes", address: "127.0.0.1" }));
    expect((await fetch(url, { headers: { authorization: `Bearer ${token}` } })).status).toBe(403);
    expect(
      await (await fetch(`${server.httpUrl}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text(),
    ).toContain('millwright_calls_refused_total{outcome="sign_in_failed"} 2');
  });

  test("and no line has a secret", () => {
    const shown = JSON.stringify(log.lines);
    expect(shown).not.toContain("canary");
    expect(shown).not.toContain(token.split("_")[2]);
  });
});

test("a caller who hangs up while a route works is no error, and the line says so", async () => {
  const begun = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<string>();
  const api = await startApi({
    http: (app) =>
      void app.get("/api/v1/slow", (request) => {
        request.raw.socket.once("close", () => answer.reject(Object.assign(new Error("gone"), { code: "ECONNRESET" })));
        begun.resolve();
        return answer.promise;
      }),
  });
  const { hostname, port } = new URL(api.httpUrl);
  const socket = connect(Number(port), hostname);
  socket.write("GET /api/v1/slow HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await begun.promise;
  socket.destroy();
  const { level, fields } = await api.log.line(({ message }) => message === "request");
  expect([level, fields]).toMatchObject(["info", { method: "GET /api/v1/slow", code: 499, address: "127.0.0.1" }]);
  await api.close();
  expect(api.log.lines.filter((line) => line.level === "error")).toEqual([]);
});

import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorInfoSchema } from "../../../contract/millwright/v1/error_info_pb.js";
import { SystemService } from "../../../contract/millwright/v1/system_pb.js";
import { createFakeTerminal, runAgainst } from "../../../test/support/cli/fake-terminal.ts";
import { runCli } from "../run-cli.ts";
import { describeFailure, EXIT, isDisconnection } from "./errors.ts";

const failing = (error: ConnectError) =>
  runAgainst((router) => {
    router.service(SystemService, {
      getSystem() {
        throw error;
      },
    });
  }, "system");

test.each([
  [Code.InvalidArgument, 2],
  [Code.OutOfRange, 2],
  [Code.NotFound, 3],
  [Code.FailedPrecondition, 4],
  [Code.AlreadyExists, 4],
  [Code.Aborted, 4],
  [Code.Unimplemented, 4],
  [Code.Unauthenticated, 5],
  [Code.PermissionDenied, 5],
  [Code.Unavailable, 6],
  [Code.DeadlineExceeded, 6],
  [Code.ResourceExhausted, 6],
  [Code.Internal, 70],
  [Code.Unknown, 70],
  [Code.DataLoss, 70],
])("code %i ends with exit code %i", async (code, exitCode) => {
  expect((await failing(new ConnectError("no", code))).code).toBe(exitCode);
});

test("an error is one line, and what helps next is the hint", async () => {
  const info = {
    desc: ErrorInfoSchema,
    value: { kind: "not_found", field: "id", next: "millwright power-shelf list" },
  };
  const { err, out, code } = await failing(
    new ConnectError("power shelf x\ndoes not exist", Code.NotFound, undefined, [info]),
  );
  expect(err).toBe("error: power shelf x does not exist\nhint: millwright power-shelf list\n");
  expect(out).toBe("");
  expect(code).toBe(EXIT.notFound);
});

test("the server's word for why goes before the code", async () => {
  const info = { desc: ErrorInfoSchema, value: { kind: "failed_precondition" } };
  expect((await failing(new ConnectError("not now", Code.InvalidArgument, undefined, [info]))).code).toBe(
    EXIT.precondition,
  );
});

test("who is not signed in is told how", async () => {
  expect((await failing(new ConnectError("no token", Code.Unauthenticated))).err).toContain("--token-file");
});

test("a connection that is refused names the server and what to start", async () => {
  const refused = Object.assign(new Error("connect"), { code: "ECONNREFUSED" });
  const error = new TypeError("fetch failed", { cause: new AggregateError([refused]) });
  expect(await describeFailure(error, "http://127.0.0.1:1")).toEqual({
    message: "cannot reach the server at http://127.0.0.1:1 (ECONNREFUSED)",
    hint: "start one with `npm start` or `millwright dev`, or name another with --server",
    exitCode: EXIT.unavailable,
  });
});

test.each(["SELF_SIGNED_CERT_IN_CHAIN", "ERR_TLS_CERT_ALTNAME_INVALID", "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED"])(
  "%s says that the connection is not trusted, and which options help",
  async (code) => {
    const error = new ConnectError(
      "tls",
      Code.Unknown,
      undefined,
      undefined,
      Object.assign(new Error("tls"), { code }),
    );
    const failure = await describeFailure(error, "https://m");
    expect(failure).toMatchObject({
      message: `no trusted connection to https://m (${code})`,
      exitCode: EXIT.unavailable,
    });
    expect(failure.hint).toContain("--ca-file");
  },
);

test("the gRPC port in place of the HTTP port is told as such", async () => {
  const grpc = createHttp2Server();
  await new Promise<void>((resolve) => grpc.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(grpc.address() as AddressInfo).port}`;
  const terminal = createFakeTerminal();
  expect(await runCli(["system", "--server", url], { version: "1", terminal })).toBe(EXIT.unavailable);
  expect(terminal.err()).toBe(
    `error: ${url} does not speak HTTP/1.1\nhint: is it the gRPC port? --server takes the HTTP address, which the server prints at its start (port 8080 unless set otherwise)\n`,
  );
  await new Promise((resolve) => grpc.close(resolve));
});

test("https to a server that speaks http is told as such", async () => {
  const plain = createServer();
  await new Promise<void>((resolve) => plain.listen(0, "127.0.0.1", resolve));
  const url = `https://127.0.0.1:${(plain.address() as AddressInfo).port}`;
  const terminal = createFakeTerminal();
  expect(await runCli(["system", "--server", url], { version: "1", terminal })).toBe(EXIT.unavailable);
  expect(terminal.err()).toBe(
    `error: ${url} does not speak TLS\nhint: is it http:// in place of https://? --server takes the address that the server prints at its start\n`,
  );
  await new Promise((resolve) => plain.close(resolve));
});

test("a server that answers 404 in words of its own is named, with what to check", async () => {
  const other = createServer((_, response) =>
    response.writeHead(404, { "content-type": "application/json" }).end("{}"),
  );
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const terminal = createFakeTerminal();
  expect(await runCli(["system", "--server", url], { version: "1", terminal })).toBe(EXIT.precondition);
  expect(terminal.err()).toContain(`error: ${url} does not know this call\nhint: check --server`);
  await new Promise((resolve) => other.close(resolve));
});

test("what a provider cannot do has nothing to do with the server's address", async () => {
  expect((await failing(new ConnectError("no medium over IPMI", Code.Unimplemented))).err).toBe(
    "error: no medium over IPMI\n",
  );
});

test("an answer that is not Millwright's says so", async () => {
  const failure = await describeFailure(new ConnectError("HTTP 502", Code.Unavailable), "http://proxy");
  expect(failure).toMatchObject({
    message: "http://proxy did not answer as Millwright does: HTTP 502",
    exitCode: EXIT.unavailable,
  });
});

test("only a lost connection is one to make again", () => {
  expect(isDisconnection(new ConnectError("gone", Code.Unavailable))).toBe(true);
  expect(isDisconnection(Object.assign(new Error("reset"), { code: "ECONNRESET" }))).toBe(true);
  expect(isDisconnection(new ConnectError("no", Code.PermissionDenied))).toBe(false);
  expect(isDisconnection(new Error("bug"))).toBe(false);
});

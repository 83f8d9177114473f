import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import { Code } from "@connectrpc/connect";
import { errorToJson } from "@connectrpc/connect/protocol-connect";
import type { AppError } from "../../../kernel/errors.ts";
import type { Log } from "../../../kernel/log.ts";
import { shownPath } from "../access/shown-path.ts";
import { toConnectError, toHttpError } from "../error-codes.ts";
import { RPC_PATH } from "../rpc-refusals.ts";
import { SAFE_HEADERS, safeHeaderLines } from "./safe-headers.ts";

/** What was refused before anybody could say who called. */
export function logRefused(
  log: Log,
  { method, url, socket }: IncomingMessage | Http2ServerRequest,
  refusal: AppError,
): void {
  log.info(
    { method: `${method} ${shownPath(url ?? "")}`, address: socket.remoteAddress ?? null, message: refusal.message },
    "request refused",
  );
}

/** Answers a request that no handler may see, in the shape that the errors of its surface have. */
export function answerRefused(request: IncomingMessage, response: ServerResponse, refusal: AppError): void {
  const { status, body } = toHttpError(refusal, () => "");
  const content = JSON.stringify(bodyFor(request.url ?? "", refusal) ?? body);
  // What is still on its way of the request is not read.
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(content),
    connection: "close",
  });
  response.end(content);
}

function bodyFor(url: string, refusal: AppError): unknown {
  if (RPC_PATH.test(url)) {
    const error = toConnectError(refusal, "millwright", () => "");
    return errorToJson(error, undefined);
  }
  return /^\/(api|internal)\//.test(url) ? { detail: refusal.message } : undefined;
}

/** The same over HTTP/2: in the words of gRPC to who speaks it. */
export function answerRefusedCall(
  { headers }: Http2ServerRequest,
  { stream }: Http2ServerResponse,
  refusal: AppError,
): void {
  if (stream.destroyed) return;
  const isGrpc = (headers["content-type"] ?? "").startsWith("application/grpc");
  const { status } = toHttpError(refusal, () => "");
  const words = {
    ":status": 200,
    "content-type": "application/grpc",
    "grpc-status": String(Code.PermissionDenied),
    "grpc-message": encodeURIComponent(refusal.message.toWellFormed()),
  };
  stream.respond({ ...SAFE_HEADERS, ...(isGrpc ? words : { ":status": status }) }, { endStream: true });
}

const UNREADABLE: Readonly<Record<string, readonly [status: string, said: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "the request took too long to arrive"],
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", "the headers are too large"],
};

/** What cannot be read as a request at all is answered by hand, with the headers that every answer has. */
export function answerUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || socket.destroyed) return;
  const [status, message] = UNREADABLE[error.code ?? ""] ?? ["400 Bad Request", "this is no HTTP request"];
  const body = JSON.stringify({ error: { kind: "invalid_argument", message, field: "", next: "" } });
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
  if (socket.writable) socket.write(`${head}${safeHeaderLines()}connection: close\r\n\r\n${body}`);
  socket.destroy(error);
}

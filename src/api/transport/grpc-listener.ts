import {
  constants,
  createSecureServer,
  createServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { Code, createContextValues } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { type Duration, milliseconds, seconds } from "../../kernel/time/duration.ts";
import { followAccess, noteAccess } from "./access/access-log.ts";
import { answerRefusedCall, logRefused } from "./browsers/answer-refused.ts";
import { SAFE_HEADERS, setSafeHeaders } from "./browsers/safe-headers.ts";
import { writesAccessKey } from "./interceptors.ts";
import { API_LIMITS, createClose, type Listener, type ListenerOptions, tlsOptions } from "./listener.ts";
import { peerKey } from "./peer.ts";

/** HTTP/2 alone, without TLS by prior knowledge. */
export function createGrpcListener({ rpc, log, onAccess, tls, guard, limits }: ListenerOptions): Listener {
  const settings = {
    settings: { maxConcurrentStreams: API_LIMITS.maxConcurrentStreams },
    // Node's 10 MB refuse new streams on a connection with some hundred slow watchers; this still bounds what one peer holds.
    maxSessionMemory: 64,
    // Who ends all of the calls that a connection may have at once is within the limit; who goes on like that is not.
    streamResetBurst: API_LIMITS.maxConcurrentStreams,
    streamResetRate: RESETS_A_SECOND,
  };
  const calls = connectNodeAdapter({
    ...rpc,
    contextValues: (request) =>
      createContextValues()
        .set(peerKey, limits.peerOf(request as Http2ServerRequest))
        .set(writesAccessKey, () => noteAccess(request, { isLogged: true })),
    fallback: (request, response) =>
      refuseUnknownMethod(request as Http2ServerRequest, response as Http2ServerResponse),
  });
  const handle = (request: Http2ServerRequest, response: Http2ServerResponse) => {
    response.stream.once("finish", () => endUnread(response.stream));
    // By whatever name they come: no browser speaks HTTP/2 without TLS, and with TLS it has compared the name with the certificate.
    const refusal = guard.originRefusal(request);
    if (refusal) {
      logRefused(log, request, refusal);
      answerRefusedCall(request, response, refusal);
      return;
    }
    setSafeHeaders(response);
    followAccess({ log, onAccess }, request, response, limits.addressOf(request));
    calls(request, response);
  };
  const server =
    tls === undefined
      ? createServer(settings, handle)
      : createSecureServer({ ...settings, ...limits.forTls(), ...tlsOptions(tls) }, handle);
  limits.guardConnections(server);
  limits.guardSessions(server);
  limits.guardStreams(server);

  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  server.on("sessionError", (error: Error) => log.debug({ err: error }, "HTTP/2 connection failed"));
  // A peer that vanished without a word is noticed, and its streams end.
  server.on("connection", (socket: Socket) => socket.setKeepAlive(true, seconds(30)));

  return {
    server,
    close: createClose(server, () => {
      for (const session of sessions) session.close();
    }),
  };
}

/** Calls that one connection may begin and break off, on and on. */
const RESETS_A_SECOND = 100;

/** How long a caller may go on sending after the answer. */
const AFTER_ANSWER: Duration = milliseconds(500);

/**
 * Ends a stream whose answer was given before the request was read, as with a message that is too large. The caller may send on
 * for a moment, so as to see the answer; left alone, such a stream would stay open until the connection ends.
 */
function endUnread(stream: ServerHttp2Stream): void {
  if (stream.readableEnded) return;
  // Node's own listener pauses the stream, since nobody takes what it passes on.
  stream.removeAllListeners("data");
  stream.resume();
  const overdue = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), AFTER_ANSWER);
  stream.once("close", () => clearTimeout(overdue));
}

/**
 * In the words of gRPC, so that its clients show a sentence instead of "HTTP 404".
 *
 * One HEADERS frame that also ends the stream: after a DATA frame, even an empty one, some clients await trailers, and report
 * that the stream was removed.
 */
function refuseUnknownMethod(request: Http2ServerRequest, { stream }: Http2ServerResponse): void {
  if (stream.destroyed) return;
  noteAccess(request, { code: "unimplemented" });
  if (!(request.headers["content-type"] ?? "").startsWith("application/grpc")) {
    stream.respond({ ...SAFE_HEADERS, ":status": 404 }, { endStream: true });
    return;
  }
  const message = encodeURIComponent(`this server has no method ${request.url}`.toWellFormed());
  stream.respond(
    {
      ...SAFE_HEADERS,
      ":status": 200,
      "content-type": "application/grpc",
      "grpc-status": String(Code.Unimplemented),
      "grpc-message": message,
    },
    { endStream: true },
  );
}

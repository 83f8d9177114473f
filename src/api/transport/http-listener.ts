import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, Server as TlsServer } from "node:https";
import type { Socket } from "node:net";
import { createContextValues } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { AppError } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import { followAccess, isHungUp, noteAccess } from "./access/access-log.ts";
import { answerRefused, answerUnreadable, logRefused } from "./browsers/answer-refused.ts";
import type { BrowserGuard } from "./browsers/browser-guard.ts";
import { setSafeHeaders } from "./browsers/safe-headers.ts";
import { RETRY_AFTER, retryAfterOf, toHttpError } from "./error-codes.ts";
import { requestIdFrom, writesAccessKey } from "./interceptors.ts";
import type { ApiLimits } from "./limits/api-limits.ts";
import {
  API_LIMITS,
  createClose,
  type Fallback,
  type HttpListenerOptions,
  type Listener,
  type ListenerOptions,
  tlsOptions,
} from "./listener.ts";
import { peerKey } from "./peer.ts";
import { explainRefusals } from "./rpc-refusals.ts";

/** HTTP/1.1: RPCs by their paths, everything else to Fastify. */
export async function createHttpListener(
  { rpc, log, onAccess, tls, guard, limits, fallback }: HttpListenerOptions,
  http: (app: FastifyInstance) => void | Promise<void>,
): Promise<Listener> {
  const createRpcServer = (rest: RequestListener): Server => {
    const handle = rpc === undefined ? rest : callsBefore(rest, rpc, limits);
    const settings = {
      ...limits.forHttp1(),
      keepAliveTimeout: API_LIMITS.keepAliveTimeout,
      keepAlive: true,
      // Node's own refusal would lack the headers that every answer has.
      requireHostHeader: false,
    };
    const answer: RequestListener = (request, response) => {
      setSafeHeaders(response);
      const refusal = refusalOf(request, guard);
      if (refusal) {
        logRefused(log, request, refusal);
        answerRefused(request, response, refusal);
        return;
      }
      followAccess({ log, onAccess }, request, response, limits.addressOf(request));
      handle(request, response);
    };
    const server =
      tls === undefined
        ? createServer(settings, answer)
        : createTlsServer({ ...settings, ...limits.forTls(), ...tlsOptions(tls) }, answer);
    limits.guardConnections(server);
    limits.guardAnswers(server);
    return server.on("checkExpectation", (_request, response: ServerResponse) => {
      setSafeHeaders(response);
      response.writeHead(417).end();
    });
  };
  const app = fastify({
    serverFactory: createRpcServer,
    bodyLimit: API_LIMITS.maxRestBodyBytes,
    trustProxy: (address) => limits.rules.isTrustedProxy(address),
    // An id that is too long is one that nothing has, in the words of its own route.
    routerOptions: { maxParamLength: API_LIMITS.maxPathPart },
    clientErrorHandler: answerUnreadable,
    genReqId: (request) => requestIdFrom(request.headers["x-request-id"]),
    // A path that is none (%ff) reaches no route, and so no handler of errors.
    frameworkErrors(error, request, reply) {
      const answer = toHttpError(new AppError("invalid_argument", error.message), () => request.id);
      void (reply as FastifyReply).status(clientErrorStatus(error) ?? answer.status).send(answer.body);
    },
  });
  frameRest(app, log, fallback);
  await http(app);
  await app.ready();

  const close = createClose(app.server, closeWhenIdle(app.server));
  return {
    server: app.server,
    async close(within) {
      await close(within);
      await app.close();
    },
  };
}

/** RPCs by their paths; everything else goes on to the routes. */
function callsBefore(rest: RequestListener, rpc: ListenerOptions["rpc"], limits: ApiLimits): RequestListener {
  const calls = connectNodeAdapter({
    ...rpc,
    // gRPC itself needs trailers, and so HTTP/2: the other port.
    grpc: false,
    contextValues: (request) =>
      createContextValues()
        .set(peerKey, limits.peerOf(request as IncomingMessage))
        .set(writesAccessKey, () => noteAccess(request, { isLogged: true })),
    fallback: (request, response) =>
      rest(request as Parameters<RequestListener>[0], response as Parameters<RequestListener>[1]),
  });
  return (request, response) => {
    explainRefusals(request, response);
    calls(request, response);
  };
}

function refusalOf(request: IncomingMessage, guard: BrowserGuard): AppError | undefined {
  const { httpVersion, headers, method = "", url = "" } = request;
  if (httpVersion === "1.1" && headers.host === undefined)
    return new AppError("invalid_argument", "a request needs a Host header");
  const guarded = { method, url, headers };
  return guard.hostRefusal(guarded) ?? guard.originRefusal(guarded);
}

/**
 * Ends each connection as soon as it has no call in flight. Node would let one that still owes the rest of a refused request,
 * or that has just answered its last call, live on until its keep-alive ends.
 */
function closeWhenIdle(server: Server): () => void {
  let closing = false;
  const callsOn = new Map<Socket, number>();
  const count = (socket: Socket, change: number) => {
    if (socket.destroyed) return;
    const calls = (callsOn.get(socket) ?? 0) + change;
    callsOn.set(socket, calls);
    if (closing && calls === 0) socket.destroySoon();
  };
  server.on(server instanceof TlsServer ? "secureConnection" : "connection", (socket: Socket) => {
    count(socket, 0);
    socket.once("close", () => callsOn.delete(socket));
  });
  server.on("request", ({ socket }, response) => {
    count(socket, 1);
    response.once("close", () => count(socket, -1));
  });
  return () => {
    closing = true;
    for (const socket of callsOn.keys()) count(socket, 0);
  };
}

/** Request id, log, and errors in the one shape of `error-codes.ts`, for every route. */
function frameRest(app: FastifyInstance, log: Log, fallback: Fallback = () => undefined): void {
  const nameOf = (request: FastifyRequest) => `${request.method} ${request.routeOptions.url ?? "(unknown)"}`;
  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id);
    const route = request.routeOptions.url;
    noteAccess(request.raw, { requestId: request.id, ...(route !== undefined && { method: nameOf(request) }) });
  });
  app.setNotFoundHandler((request, reply) => {
    const answered = fallback(request, reply);
    if (answered) return answered;
    throw new AppError("not_found", `there is no ${request.method} ${request.url.split("?", 1)[0]}`);
  });
  app.setErrorHandler((error, request, reply) => {
    const status = clientErrorStatus(error);
    const shown =
      status === undefined
        ? error
        : new AppError("invalid_argument", error instanceof Error ? error.message : String(error));
    const answer = toHttpError(shown, (cause) => {
      const fields = { err: cause, method: nameOf(request), requestId: request.id };
      if (isHungUp(request.raw, cause)) log.debug(fields, "the caller hung up");
      else log.error(fields, "request failed unexpectedly");
      return request.id;
    });
    const retryAfter = retryAfterOf(error);
    if (retryAfter !== undefined) reply.header(RETRY_AFTER, retryAfter);
    return reply.status(status ?? answer.status).send(answer.body);
  });
}

/** Fastify's own refusals (bad JSON, too large, wrong media type) carry a status below 500; their texts are for callers. */
function clientErrorStatus(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("statusCode" in error) || typeof error.statusCode !== "number") return undefined;
  return error.statusCode >= 400 && error.statusCode < 500 ? error.statusCode : undefined;
}

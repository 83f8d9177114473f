import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer, type Server, type Socket } from "node:net";
import type { FaultBook } from "../faults/fault-book.ts";
import { delayWhileConnected, isSpoiltBefore, spoil } from "../faults/spoilt-answer.ts";
import { readBody, splitTarget } from "../request-body.ts";
import type { SimulatedClock } from "../simulated-clock.ts";
import { type ApiUser, forbiddenTo } from "./access-rules.ts";
import { type ApiCall, type ApiReply, failure } from "./api-call.ts";
import { CERTIFICATE_ROUTES } from "./certificate-routes.ts";
import type { Cluster } from "./cluster.ts";
import { DISCOVERY_ROUTES } from "./discovery.ts";
import { NODE_ROUTES } from "./node-routes.ts";
import { watchNodes } from "./node-watch.ts";
import { OTHER_ROUTES } from "./other-routes.ts";
import { POD_ROUTES } from "./pod-routes.ts";
import { signIn } from "./sign-in.ts";

export interface KubernetesApiOptions {
  readonly cluster: Cluster;
  readonly clock: SimulatedClock;
  readonly faults: FaultBook;
  readonly log: (line: string) => void;
}

const ROUTES = [...DISCOVERY_ROUTES, ...NODE_ROUTES, ...POD_ROUTES, ...CERTIFICATE_ROUTES, ...OTHER_ROUTES];
const TLS_HANDSHAKE = 22;

/** The API of one cluster. The same port speaks HTTP and HTTPS: the first byte of a connection tells which is meant. */
export function createKubernetesApi(options: KubernetesApiOptions): Server & { closeAllConnections(): void } {
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    serve(options, request, response).catch((error: unknown) => {
      if (!request.socket.destroyed)
        options.log(`kubernetes ${options.cluster.name}: ${error instanceof Error ? error.stack : String(error)}`);
      request.socket.destroy();
    });
  };
  const { key, cert } = options.cluster.certificate;
  const plain = createHttpServer({ keepAlive: true }, answer);
  const secure = createHttpsServer(
    // Whose certificate it is not is told by the sign-in, and not by breaking the connection, as real ones do.
    { key, cert, ca: cert, requestCert: true, rejectUnauthorized: false, minVersion: "TLSv1.2", keepAlive: true },
    answer,
  );
  for (const server of [plain, secure]) server.on("clientError", (_error, socket) => socket.destroy());
  const open = new Set<Socket>();
  const front = createServer({ noDelay: true }, (socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("error", () => {});
    socket.once("readable", () => {
      const first: Buffer | null = socket.read();
      if (first === null) return;
      socket.unshift(first);
      (first[0] === TLS_HANDSHAKE ? secure : plain).emit("connection", socket);
    });
  });
  return Object.assign(front, {
    closeAllConnections() {
      for (const socket of open) socket.destroy();
    },
  });
}

async function serve(options: KubernetesApiOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { cluster, clock, faults } = options;
  const { path, query } = splitTarget(request.url);
  const method = request.method ?? "GET";
  const trouble = faults.transport({ device: cluster.name, method, path });
  if (trouble.latencyMs > 0) await delayWhileConnected(trouble.latencyMs, request);
  const spoilt = () =>
    spoil(trouble.ending, {
      request,
      response,
      sendError: (status, body, headers) =>
        send(response, { status, body: body ?? failure(status, excuseOf(status, path)).body }, headers),
      garbage: '{"kind":"Status","apiVersion":',
    });
  if (isSpoiltBefore(trouble)) return spoilt();
  const text = await readBody(request);
  if (text === undefined) return send(response, failure(413, "the body is too large"));
  if (request.headers.origin !== undefined) return send(response, failure(403, "this API is not for web pages"));
  const user = signIn(cluster, request);
  if ("status" in user) return send(response, user);
  const wantsWatch = /^(true|1)$/.test(new URLSearchParams(query).get("watch") ?? "");
  const forbidden = forbiddenTo(user, { method, path: decode(path), isWatch: wantsWatch });
  if (forbidden !== undefined) return send(response, forbidden);
  const call = callOf(options, request, { query, text, user });
  if ("status" in call) return send(response, call);
  if (method === "GET" && path === "/api/v1/nodes" && wantsWatch && trouble.ending === undefined)
    return watchNodes({ ...call, cluster, clock }, response);
  const reply = dispatch(method, path, call);
  if (trouble.ending !== undefined) return spoilt();
  send(response, reply);
}

function dispatch(method: string, path: string, call: ApiCall): ApiReply {
  const matching = ROUTES.flatMap(([verb, pattern, handle]) => {
    const match = pattern.exec(path);
    return match === null ? [] : [{ verb, handle, names: match.slice(1).map(decode) }];
  });
  if (matching.length === 0) return failure(404, "the server could not find the requested resource");
  const route = matching.find(({ verb }) => verb === method);
  if (route === undefined) return failure(405, "the server does not allow this method on the requested resource");
  return route.handle({ ...call, names: route.names });
}

function callOf(
  { cluster, clock }: KubernetesApiOptions,
  request: IncomingMessage,
  { query, text, user }: { query: string; text: string; user: ApiUser },
): ApiCall | ApiReply {
  let body: unknown;
  try {
    body = text.trim() === "" ? undefined : JSON.parse(text);
  } catch {
    return failure(400, "the body is not JSON");
  }
  return {
    cluster,
    clock,
    names: [],
    user,
    query: new URLSearchParams(query),
    body,
    contentType: request.headers["content-type"] ?? "",
    asTable: (request.headers.accept ?? "").includes("as=Table"),
    endpoint: `${request.socket.localAddress ?? "127.0.0.1"}:${request.socket.localPort ?? 0}`,
  };
}

/** Evictions are refused in these words; whatever else does not answer says no more than that. */
const excuseOf = (status: number, path: string): string =>
  status === 429 && path.endsWith("/eviction")
    ? "Cannot evict pod as it would violate the pod's disruption budget."
    : "the server is not able to answer now";

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function send(response: ServerResponse, reply: ApiReply, headers: Readonly<Record<string, string>> = {}): void {
  const text = reply.text ?? JSON.stringify(reply.body ?? {});
  response.writeHead(reply.status, {
    "Content-Type": reply.text === undefined ? "application/json" : "text/plain",
    "Content-Length": Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

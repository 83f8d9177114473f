import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { delayWhileConnected, isSpoiltBefore, spoil } from "../faults/spoilt-answer.ts";
import { readBody, splitTarget } from "../request-body.ts";
import { ApiFailure } from "./api-failure.ts";
import type { ApiReply } from "./api-route.ts";
import { Form, parseForm } from "./form.ts";
import { MACHINE_ROUTES } from "./machine-routes.ts";
import { NODE_ROUTES } from "./node-routes.ts";
import { OTHER_ROUTES } from "./other-routes.ts";
import type { Region } from "./region.ts";
import type { SignIn } from "./sign-in.ts";

/** Fault rules call it by this name; those of one server by the id of the server. */
export const MAAS = "maas";
const ROOT = "/MAAS/api/2.0/";
const ROUTES = [...MACHINE_ROUTES, ...NODE_ROUTES, ...OTHER_ROUTES];
/** User data of a deployment may be long. */
const MOST_BODY_BYTES = 1_048_576;

export interface MaasApiOptions {
  readonly region: Region;
  readonly signIn: SignIn;
  readonly log: (line: string) => void;
}

/** The API 2.0 of a MAAS region, over plain HTTP as on a region's own port. */
export function createMaasApi(options: MaasApiOptions): Server {
  const server = createServer({ keepAlive: true }, (request, response) => {
    serve(options, request, response).catch((error: unknown) => {
      if (!request.socket.destroyed) options.log(`maas: ${error instanceof Error ? error.stack : String(error)}`);
      request.socket.destroy();
    });
  });
  server.on("clientError", (_error, socket) => socket.destroy());
  return server;
}

async function serve(options: MaasApiOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { path, query } = splitTarget(request.url);
  const method = request.method ?? "GET";
  const trouble = options.region.faults.transport({ device: MAAS, method, path });
  if (trouble.latencyMs > 0) await delayWhileConnected(trouble.latencyMs, request);
  const spoilt = () =>
    spoil(trouble.ending, {
      request,
      response,
      sendError: (status, body, headers) => send(response, { status, ...asReply(body) }, headers),
      garbage: '[{"system_id":',
    });
  if (isSpoiltBefore(trouble)) return spoilt();
  const text = await readBody(request, MOST_BODY_BYTES);
  const reply = text === undefined ? { status: 413, text: "Request too large." } : answer(options, request, text);
  if (method !== "GET") {
    const op = new URLSearchParams(query).get("op");
    options.region.noteCall({ method, path, op, status: reply.status });
  }
  if (trouble.ending !== undefined) return spoilt();
  send(response, reply);
}

const asReply = (body: unknown): Omit<ApiReply, "status"> =>
  body === undefined
    ? { text: "Unable to connect to the region." }
    : typeof body === "string"
      ? { text: body }
      : { body };

function answer({ region, signIn }: MaasApiOptions, request: IncomingMessage, text: string): ApiReply {
  try {
    const { path, query } = splitTarget(request.url);
    const asked = new Form(new URLSearchParams(query));
    const { route, names } = routeOf(request.method ?? "GET", path, asked.get("op") ?? null);
    if (route.isAnonymous !== true) signIn.check(request.headers.authorization);
    return route.handle({ region, names, query: asked, form: parseForm(request.headers["content-type"] ?? "", text) });
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    return typeof error.body === "string"
      ? { status: error.status, text: error.body }
      : { status: error.status, body: error.body };
  }
}

function routeOf(method: string, path: string, op: string | null) {
  if (!path.startsWith(ROOT)) throw new ApiFailure(404, "Not found.");
  const below = path.slice(ROOT.length);
  const matching = ROUTES.flatMap((route) => {
    const match = route.path.exec(below);
    return match === null ? [] : [{ route, names: match.slice(1) }];
  });
  if (matching.length === 0) throw new ApiFailure(404, `Unknown API endpoint: ${path}.`);
  const found = matching.find(({ route }) => route.method === method && route.op === op);
  if (found === undefined) throw new ApiFailure(400, `Unrecognised signature: method=${method} op=${op ?? "None"}`);
  return found;
}

function send(response: ServerResponse, reply: ApiReply, headers: Readonly<Record<string, string>> = {}): void {
  const text = reply.text ?? JSON.stringify(reply.body ?? null);
  response.writeHead(reply.status, {
    "Content-Type": reply.text === undefined ? "application/json" : "text/plain; charset=utf-8",
    ...(reply.status !== 204 && { "Content-Length": Buffer.byteLength(text) }),
    ...headers,
  });
  response.end(reply.status === 204 ? undefined : text);
}

import { createServer, type IncomingMessage, request as plainly, type ServerResponse } from "node:http";
import { request as securely } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { DeviceTrouble } from "../../../src/capabilities/conformance/device-bench.ts";

/** Stands before an HTTP service, passes everything on, and can make trouble that the service itself cannot be made to make. */
export interface FaultProxy {
  readonly port: number;
  cause(trouble: DeviceTrouble): Promise<void>;
  putRight(): Promise<void>;
  /** What was passed on and answered with success, as `METHOD /path body`. */
  readonly accepted: string[];
  /** How many requests came, whatever became of them. */
  readonly received: number;
  /** As if it had just been started. */
  forget(): Promise<void>;
  close(): Promise<void>;
}

/** What the proxy can make: all that does not take the service itself. */
export const PROXY_TROUBLES = [
  "is_gone",
  "cuts_connections",
  "hangs",
  "drips",
  "is_slow",
  "is_overloaded",
  "writes_garbage",
  "talks_nonsense",
  "floods",
  "rejects_credentials",
  "forbids",
] as const satisfies readonly DeviceTrouble[];
type ProxyTrouble = Exclude<(typeof PROXY_TROUBLES)[number], "is_gone" | "is_slow">;

const SLOW_MS = 150;
const DRIP_MS = 20;

export interface Service {
  readonly port: number;
  readonly host?: string;
  /** It speaks TLS, with whatever certificate; the proxy itself speaks plain HTTP. */
  readonly secure?: boolean;
}

/** Written by whoever is asked for something else. */
const NONSENSE = JSON.stringify({ message: "It works!" });

/** Byte by byte, for as long as somebody listens. */
function drip(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" }).write("{");
  const timer = setInterval(() => response.write(" "), DRIP_MS);
  response.once("close", () => clearInterval(timer));
}

/** As fast as it is taken, for as long as somebody listens. */
function flood(response: ServerResponse): void {
  const piece = " ".repeat(64 * 1_024);
  const pour = () => {
    while (!response.destroyed) if (!response.write(piece)) return;
  };
  response.writeHead(200, { "content-type": "application/json" }).write("{");
  response.on("drain", pour);
  response.on("error", () => undefined);
  pour();
}

const MAKE: Readonly<Record<ProxyTrouble, (request: IncomingMessage, response: ServerResponse) => void>> = {
  cuts_connections: (request) => request.socket.destroy(),
  hangs: () => undefined,
  drips: (_, response) => drip(response),
  is_overloaded: (_, response) => response.writeHead(503).end("busy"),
  writes_garbage: (_, response) => response.writeHead(200).end("\u0000\u0001 not JSON"),
  talks_nonsense: (_, response) => response.writeHead(200, { "content-type": "application/json" }).end(NONSENSE),
  floods: (_, response) => flood(response),
  rejects_credentials: (_, response) => response.writeHead(401).end("who are you?"),
  forbids: (_, response) => response.writeHead(403).end("not you"),
};

export async function startFaultProxy({
  port: servicePort,
  host = "127.0.0.1",
  secure = false,
}: Service): Promise<FaultProxy> {
  let trouble: DeviceTrouble | null = null;
  let received = 0;
  const accepted: string[] = [];
  const sockets = new Set<Socket>();

  async function passOn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const { method, url: path, headers } = request;
    const forward = secure ? securely : plainly;
    const where = { host, port: servicePort, rejectUnauthorized: false };
    const onward = forward({ ...where, method, path, headers }, (answer) => {
      if ((answer.statusCode ?? 500) < 300) accepted.push(`${method} ${path} ${body}`);
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    onward.end(body);
  }

  const server = createServer(async (request, response) => {
    received += 1;
    if (trouble === "is_slow") await pause(SLOW_MS);
    const fault = Object.entries(MAKE).find(([name]) => name === trouble)?.[1];
    if (fault === undefined) await passOn(request, response);
    else fault(request, response);
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  const listen = (at: number) => new Promise<void>((resolve) => server.listen(at, "127.0.0.1", resolve));
  const leave = async () => {
    for (const socket of sockets) socket.destroy();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const putRight = async () => {
    trouble = null;
    if (!server.listening) await listen(port);
  };
  return {
    port,
    async cause(next) {
      trouble = next;
      if (next === "is_gone") await leave();
    },
    putRight,
    accepted,
    get received() {
      return received;
    },
    async forget() {
      await putRight();
      received = 0;
      accepted.length = 0;
    },
    close: leave,
  };
}

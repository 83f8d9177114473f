import { createServer, request as forward, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { DeviceTrouble } from "../../../src/capabilities/conformance/device-bench.ts";

/** Stands before an HTTP service, passes everything on, and can make trouble that the service itself cannot be made to make. */
export interface FaultProxy {
  readonly port: number;
  /** Null: none. */
  trouble: DeviceTrouble | null;
  /** What was passed on and answered with success, as `METHOD /path body`. */
  readonly accepted: string[];
  /** How many requests came, whatever became of them. */
  readonly received: number;
  forget(): void;
  close(): Promise<void>;
}

export async function startFaultProxy(servicePort: number): Promise<FaultProxy> {
  let trouble: DeviceTrouble | null = null;
  let received = 0;
  const accepted: string[] = [];
  const sockets = new Set<Socket>();

  const make: Partial<Record<DeviceTrouble, (request: IncomingMessage, response: ServerResponse) => void>> = {
    cuts_connections: (request) => request.socket.destroy(),
    hangs: () => undefined,
    is_overloaded: (_, response) => response.writeHead(503).end("busy"),
    writes_garbage: (_, response) => response.writeHead(200).end("\u0000\u0001 not JSON"),
    rejects_credentials: (_, response) => response.writeHead(401).end("who are you?"),
  };

  async function passOn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const { method, url: path, headers } = request;
    const onward = forward({ host: "127.0.0.1", port: servicePort, method, path, headers }, (answer) => {
      if ((answer.statusCode ?? 500) < 300) accepted.push(`${method} ${path} ${body}`);
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    onward.end(body);
  }

  const server = createServer((request, response) => {
    received += 1;
    const fault = trouble === null ? undefined : make[trouble];
    if (fault === undefined) void passOn(request, response);
    else fault(request, response);
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    get trouble() {
      return trouble;
    },
    set trouble(next) {
      trouble = next;
    },
    accepted,
    get received() {
      return received;
    },
    forget() {
      received = 0;
      accepted.length = 0;
      trouble = null;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { Socket } from "node:net";
import type { Certificate } from "../certificate/certificate.ts";
import type { ManagedDevice } from "../devices/managed-device.ts";
import type { FaultBook } from "../faults/fault-book.ts";
import { delayWhileConnected, isSpoiltBefore, spoil } from "../faults/spoilt-answer.ts";
import { readBody, splitTarget } from "../request-body.ts";
import { type Answer, refuse } from "./answer.ts";
import { streamEvents } from "./event-stream.ts";
import { fetchMedium } from "./fetch-medium.ts";
import type { RedfishRequest } from "./redfish-service.ts";

export interface RedfishDevice {
  readonly device: ManagedDevice;
  readonly service: { answer(request: RedfishRequest): Answer };
}

/**
 * One HTTPS server in front of all devices: the address that the client connected to says which device it means.
 *
 * It is bound to all addresses, because a range of loopback addresses cannot be bound otherwise. Whatever comes in through
 * an address outside 127.0.0.0/8, or through one without a device, is cut before the TLS handshake.
 */
export function createRedfishListener(options: {
  readonly certificate: Certificate;
  readonly deviceAt: (address: string) => RedfishDevice | undefined;
  readonly faults: FaultBook;
  readonly log: (line: string) => void;
}): Server {
  const { certificate, deviceAt, faults, log } = options;
  const server = createServer({ ...certificate, minVersion: "TLSv1.2", keepAlive: true, keepAliveTimeout: 60_000 });
  server.on("connection", (socket: Socket) => {
    const address = socket.localAddress ?? "";
    if (!address.startsWith("127.") || deviceAt(address) === undefined) socket.destroy();
  });
  server.on("request", (request, response) => {
    const found = deviceAt(request.socket.localAddress ?? "");
    if (found === undefined) return void request.socket.destroy();
    serve(found, faults, request, response).catch((error: unknown) => {
      if (!request.socket.destroyed)
        log(`redfish ${found.device.spec.id}: ${error instanceof Error ? error.stack : String(error)}`);
      request.socket.destroy();
    });
  });
  server.on("clientError", (_error, socket) => {
    if (socket.writable) socket.end("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    else socket.destroy();
  });
  return server;
}

async function serve(
  { device, service }: RedfishDevice,
  faults: FaultBook,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { path, query } = splitTarget(request.url);
  const method = request.method ?? "GET";
  device.requests += 1;
  if (!device.reachable) return void request.socket.destroy();

  const trouble = faults.transport({ device: device.spec.id, method, path });
  if (trouble.latencyMs > 0) await delayWhileConnected(trouble.latencyMs, request);
  const spoilt = () =>
    spoil(trouble.ending, {
      request,
      response,
      sendError: (status, body, headers) =>
        send(response, {
          status,
          headers,
          body: body ?? refuse("GeneralError", "The service is not able to answer now.").body,
        }),
      garbage: '{"@odata.id": "/redfish/v1/Chassis/',
    });
  if (isSpoiltBefore(trouble)) return spoilt();

  const body = await readBody(request);
  const answer =
    body === undefined
      ? refuse("PayloadTooLarge")
      : await answerTo(service, { method, path, query, headers: request.headers, body });
  if (trouble.ending !== undefined) return spoilt();
  if (answer.isEventStream === true) return streamEvents(device, response);
  send(response, answer);
}

async function answerTo(service: RedfishDevice["service"], request: RedfishRequest): Promise<Answer> {
  const answer = service.answer(request);
  if (answer.fetchFirst === undefined) return answer;
  return service.answer({ ...request, fetched: await fetchMedium(answer.fetchFirst) });
}

function send(response: ServerResponse, { status, headers, body }: Answer): void {
  const bodiless = body === undefined || status === 204 || status === 304;
  const text = bodiless ? "" : JSON.stringify(body);
  response.writeHead(status, {
    "OData-Version": "4.0",
    "Cache-Control": "no-cache",
    ...(bodiless
      ? {}
      : { "Content-Type": "application/json; charset=utf-8", "Content-Length": Buffer.byteLength(text) }),
    ...headers,
  });
  response.end(text);
}

import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server as HttpsServer } from "node:https";
import { createServer as createFront, type Server, type Socket } from "node:net";
import type { Certificate } from "../certificate/certificate.ts";
import type { ManagedDevice } from "../devices/managed-device.ts";
import type { FaultBook } from "../faults/fault-book.ts";
import { delayWhileConnected, isSpoiltBefore, spoil } from "../faults/spoilt-answer.ts";
import { readBody, splitTarget } from "../request-body.ts";
import { type Answer, refuse } from "./answer.ts";
import { streamEvents } from "./events/event-stream.ts";
import { fetchMedium } from "./fetch-medium.ts";
import type { RedfishRequest } from "./redfish-service.ts";
import { isUpload } from "./update/update-resources.ts";
import { readUpload } from "./update/upload.ts";

export interface RedfishDevice {
  readonly device: ManagedDevice;
  readonly service: { answer(request: RedfishRequest): Answer };
  /** Whether what answers there is up. Absent: it is the management controller. */
  readonly isUp?: () => boolean;
}

export interface ListenerOptions {
  readonly certificate: Certificate;
  /** The certificate that a device has made itself; `number` counts them. */
  readonly ownCertificate: (device: ManagedDevice, number: number) => Certificate;
  readonly deviceAt: (address: string) => RedfishDevice | undefined;
  readonly faults: FaultBook;
  readonly log: (line: string) => void;
}

/**
 * One port in front of all devices: the address that the client connected to says which device it means.
 *
 * It is bound to all addresses, because a range of loopback addresses cannot be bound otherwise. Whatever comes in through
 * an address outside 127.0.0.0/8, or through one without a device, is cut before the TLS handshake. Clients that connect to an
 * address send no server name, so a device with a certificate of its own gets an HTTPS server of its own behind the port.
 */
export function createRedfishListener(options: ListenerOptions): Server & { closeAllConnections(): void } {
  const { certificate, ownCertificate, deviceAt } = options;
  const usual = createHttps(certificate, 0, options);
  const own = new Map<string, HttpsServer>();
  const behind = (device: ManagedDevice): HttpsServer => {
    const number = device.firmware.certificate;
    if (number === 0) return usual;
    const name = `${device.spec.id}/${number}`;
    const made = own.get(name) ?? createHttps(ownCertificate(device, number), number, options);
    own.set(name, made);
    return made;
  };
  const open = new Set<Socket>();
  const front = createFront((socket) => {
    const address = socket.localAddress ?? "";
    const found = address.startsWith("127.") ? deviceAt(address) : undefined;
    if (found === undefined) return void socket.destroy();
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    behind(found.device).emit("connection", socket);
  });
  return Object.assign(front, {
    closeAllConnections() {
      for (const socket of open) socket.destroy();
    },
  });
}

/** @param number which of its certificates a device must be showing to be answered for; connections of before are cut */
function createHttps(
  certificate: Certificate,
  number: number,
  { deviceAt, faults, log }: ListenerOptions,
): HttpsServer {
  const server = createServer({ ...certificate, minVersion: "TLSv1.2", keepAlive: true, keepAliveTimeout: 60_000 });
  server.on("request", (request, response) => {
    const found = deviceAt(request.socket.localAddress ?? "");
    if (found?.device.firmware.certificate !== number) return void request.socket.destroy();
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
  { device, service, isUp }: RedfishDevice,
  faults: FaultBook,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { path, query } = splitTarget(request.url);
  const method = request.method ?? "GET";
  device.requests += 1;
  if (!(isUp?.() ?? device.reachable)) return void request.socket.destroy();

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

  const answer = await answerOf(service, { method, path, query, headers: request.headers }, request);
  if (trouble.ending !== undefined) return spoilt();
  if (answer.isEventStream === true) return streamEvents(device, response);
  send(response, answer);
}

async function answerOf(
  service: RedfishDevice["service"],
  asked: Omit<RedfishRequest, "body">,
  request: IncomingMessage,
): Promise<Answer> {
  if (isUpload(asked.method, asked.path))
    return service.answer({ ...asked, body: "", upload: await readUpload(request) });
  const body = await readBody(request);
  return body === undefined ? refuse("PayloadTooLarge") : await answerTo(service, { ...asked, body });
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

import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import type { UniversalClientFn, UniversalClientRequest } from "@connectrpc/connect/protocol";

/** PEM texts. */
export interface TlsFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/**
 * Sends Connect's requests with Node's own HTTP client.
 *
 * The ready-made transports cost a command that should answer at once too much: one loads HTTP/2 and gRPC, the other `fetch`,
 * 60 ms and more each. `fetch` also gives up on a stream that is silent for five minutes, and a quiet fleet is silent for longer.
 */
export function createHttpClient(tls: TlsFiles): UniversalClientFn {
  return async (request) => {
    const response = await send(request, tls);
    const header = new Headers();
    for (let at = 0; at + 1 < response.rawHeaders.length; at += 2) {
      header.append(response.rawHeaders[at] ?? "", response.rawHeaders[at + 1] ?? "");
    }
    // HTTP/1.1 trailers are no part of the Connect protocol.
    return { status: response.statusCode ?? 0, header, body: response, trailer: new Headers() };
  };
}

async function send(request: UniversalClientRequest, tls: TlsFiles): Promise<IncomingMessage> {
  const body = await collect(request.body);
  const url = new URL(request.url);
  const options: RequestOptions = {
    method: request.method,
    headers: { ...Object.fromEntries(request.header), "content-length": body.length },
    ...(request.signal ? { signal: request.signal } : {}),
  };
  const open: () => ClientRequest = await openerFor(url, options, tls);
  return new Promise((resolve, reject) => {
    const outgoing = open();
    outgoing.on("response", resolve);
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** Only what the address needs is loaded. */
async function openerFor(url: URL, options: RequestOptions, tls: TlsFiles): Promise<() => ClientRequest> {
  if (url.protocol === "https:") {
    const https = await import("node:https");
    const secure =
      tls.ca === undefined ? tls : { ...tls, ca: [...(await import("node:tls")).getCACertificates("default"), tls.ca] };
    return () => https.request(url, { ...options, ...secure });
  }
  const http = await import("node:http");
  return () => http.request(url, options);
}

/** What we send is small and whole: requests are single messages. */
async function collect(body: AsyncIterable<Uint8Array> | undefined): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  if (body) for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
}

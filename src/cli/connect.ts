import type { Interceptor, Transport } from "@connectrpc/connect";
import { readTextFile } from "./discover-server.ts";
import { UsageError } from "./errors.ts";

export interface ConnectionOptions {
  readonly url: string;
  readonly token: string | undefined;
  readonly caFile?: string | undefined;
  readonly clientCert?: string | undefined;
  readonly clientKey?: string | undefined;
}

/** No single answer takes longer; streams are not bound by it. */
const UNARY_TIMEOUT_MS = 60_000;

/**
 * The Connect protocol over HTTP/1.1.
 *
 * Short calls go through `fetch`, which loads fastest. Streams do not: `fetch` gives up on a body that is silent for five
 * minutes, and a quiet fleet is silent for longer. Client certificates need Node's own client, too.
 */
export async function openTransport(options: ConnectionOptions, kind: "unary" | "streaming"): Promise<Transport> {
  const interceptors = options.token === undefined ? [] : [bearer(options.token)];
  const mutualTls = options.clientCert !== undefined || options.clientKey !== undefined;
  if (kind === "unary" && !mutualTls) {
    await trustCa(options.caFile);
    const { createConnectTransport } = await import("@connectrpc/connect-web");
    return createConnectTransport({
      baseUrl: options.url,
      useBinaryFormat: true,
      interceptors,
      defaultTimeoutMs: UNARY_TIMEOUT_MS,
    });
  }
  const { createConnectTransport } = await import("@connectrpc/connect-node");
  return createConnectTransport({
    baseUrl: options.url,
    httpVersion: "1.1",
    useBinaryFormat: true,
    interceptors,
    acceptCompression: [],
    nodeOptions: tlsOptions(options),
    ...(kind === "unary" ? { defaultTimeoutMs: UNARY_TIMEOUT_MS } : {}),
  });
}

const bearer =
  (token: string): Interceptor =>
  (next) =>
  (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };

async function trustCa(caFile: string | undefined): Promise<void> {
  if (caFile === undefined) return;
  const tls = await import("node:tls");
  tls.setDefaultCACertificates([...tls.getCACertificates("default"), mustRead(caFile, "--ca-file")]);
}

function tlsOptions({ caFile, clientCert, clientKey }: ConnectionOptions): {
  ca?: string;
  cert?: string;
  key?: string;
} {
  if ((clientCert === undefined) !== (clientKey === undefined)) {
    throw new UsageError("--client-cert and --client-key belong together");
  }
  return {
    ...(caFile === undefined ? {} : { ca: mustRead(caFile, "--ca-file") }),
    ...(clientCert === undefined ? {} : { cert: mustRead(clientCert, "--client-cert") }),
    ...(clientKey === undefined ? {} : { key: mustRead(clientKey, "--client-key") }),
  };
}

function mustRead(path: string, field: string): string {
  const text = readTextFile(path);
  if (text === undefined) throw new UsageError(`${field}: ${path} does not exist`);
  return text;
}

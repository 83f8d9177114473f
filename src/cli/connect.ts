import type { Interceptor, Transport } from "@connectrpc/connect";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { readTextFile } from "./discover-server.ts";
import { UsageError } from "./errors.ts";
import { createHttpClient, type TlsFiles } from "./http-client.ts";

export interface ConnectionOptions {
  readonly url: string;
  readonly token: string | undefined;
  readonly caFile?: string | undefined;
  readonly clientCert?: string | undefined;
  readonly clientKey?: string | undefined;
}

/** No single answer takes longer; streams are not bound by it. */
const UNARY_TIMEOUT_MS = 60_000;
const MOST_BYTES = 64 * 1024 * 1024;

/** The Connect protocol over HTTP/1.1. */
export function openTransport(options: ConnectionOptions, kind: "unary" | "streaming"): Transport {
  return createTransport({
    baseUrl: options.url,
    httpClient: createHttpClient(tlsFiles(options)),
    interceptors: options.token === undefined ? [] : [bearer(options.token)],
    useBinaryFormat: true,
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: 1024,
    readMaxBytes: MOST_BYTES,
    writeMaxBytes: MOST_BYTES,
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

function tlsFiles({ caFile, clientCert, clientKey }: ConnectionOptions): TlsFiles {
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

import type { Interceptor, Transport } from "@connectrpc/connect";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { createHttpClient } from "./http-client.ts";
import { tlsFiles } from "./tls-files.ts";

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

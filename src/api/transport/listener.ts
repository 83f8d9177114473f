import type { Server, Socket } from "node:net";
import type { Server as TlsServer } from "node:tls";
import type { ConnectRouter, HandlerContext, Interceptor } from "@connectrpc/connect";
import type { Compression } from "@connectrpc/connect/protocol";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Log } from "../../kernel/log.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import type { AccessSink } from "./access/access-log.ts";
import type { BrowserGuard } from "./browsers/browser-guard.ts";
import type { ApiLimits } from "./limits/api-limits.ts";

export interface TlsMaterial {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** Clients are asked for a certificate, and one signed by this CA names them. None is required: tokens work beside it. */
  readonly clientCa?: string | Buffer;
}

/** What both ports hold callers to. */
export const API_LIMITS = {
  /** Per message, after decompression; a request above it is answered with RESOURCE_EXHAUSTED. */
  maxMessageBytes: 4 * 1024 * 1024,
  /** Per REST body; above it 413. */
  maxRestBodyBytes: 1024 * 1024,
  /** Of a path's variable part; Node bounds the whole. */
  maxPathPart: 16 * 1024,
  /** Longer than proxies keep theirs: who reuses a connection must not find it just closed. */
  keepAliveTimeout: seconds(75),
  /** Open calls on one HTTP/2 connection. */
  maxConcurrentStreams: 2_000,
} as const;

/** What the listeners share. */
export interface ListenerOptions {
  readonly rpc: {
    readonly routes: (router: ConnectRouter) => void;
    readonly interceptors: Interceptor[];
    readonly requestGate?: (context: HandlerContext) => void | Promise<void>;
    readonly shutdownSignal: AbortSignal;
    readonly readMaxBytes: number;
    readonly acceptCompression: Compression[];
    readonly compressMinBytes: number;
    readonly jsonOptions: { readonly ignoreUnknownFields: boolean };
  };
  readonly log: Log;
  readonly onAccess: AccessSink["onAccess"];
  readonly tls: TlsMaterial | undefined;
  readonly guard: BrowserGuard;
  readonly limits: ApiLimits;
}

/** Answers a request that no route answers, or leaves it (undefined) to be refused. */
export type Fallback = (request: FastifyRequest, reply: FastifyReply) => FastifyReply | undefined;

/** What a port without RPCs needs. */
export type HttpListenerOptions = Omit<ListenerOptions, "rpc"> & {
  readonly fallback?: Fallback | undefined;
  /** Absent: RPCs are unknown paths, as everything else without a route. */
  readonly rpc?: ListenerOptions["rpc"];
};

/** One port. */
export interface Listener {
  readonly server: Server;
  /** Stops accepting, waits at most this long for what is open, then cuts it off. Resolves in any case. */
  close(within: Duration): Promise<void>;
}

/**
 * Stops accepting, and resolves once every connection has ended: by `windDown` what can be ended in peace, by force what is left
 * after `within`.
 */
export function createClose(server: Server, windDown: () => void): Listener["close"] {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return async (within) => {
    // A server that never listened answers with an error, which is as good.
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    windDown();
    const overdue = setTimeout(() => {
      for (const socket of sockets) socket.destroy();
    }, within);
    await closed;
    clearTimeout(overdue);
  };
}

/** From the next connection on. Listeners without TLS stay so. */
export function renewTls({ server }: Listener, tls: TlsMaterial): void {
  if ("setSecureContext" in server) (server as TlsServer).setSecureContext(tlsOptions(tls));
}

export function tlsOptions(tls: TlsMaterial) {
  const { cert, key, clientCa } = tls;
  const verification = clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: false };
  return { cert, key, minVersion: "TLSv1.2", ...verification } as const;
}

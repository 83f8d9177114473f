import { ConnectError, type ConnectRouter, type Interceptor, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { FastifyInstance } from "fastify";
import type { SignedIn } from "../../../src/api/auth/authenticate.ts";
import type { BrowserRules } from "../../../src/api/transport/browsers/browser-guard.ts";
import { HealthSwitch, healthRoutes } from "../../../src/api/transport/health-service.ts";
import { createCallFrame } from "../../../src/api/transport/interceptors.ts";
import { ApiLimits, type LimitRules, WIDE_LIMITS } from "../../../src/api/transport/limits/api-limits.ts";
import type { Fallback, TlsMaterial } from "../../../src/api/transport/listener.ts";
import type { Peer } from "../../../src/api/transport/peer.ts";
import { reflectionRoutes } from "../../../src/api/transport/reflection.ts";
import { type ApiServers, startApiServers } from "../../../src/api/transport/server.ts";
import type { Log } from "../../../src/kernel/log.ts";
import { type Duration, seconds } from "../../../src/kernel/time/duration.ts";

export interface LogLine {
  readonly level: keyof Log;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** Keeps every line, and lets a test wait for one. */
export class RecordingLog implements Log {
  readonly lines: LogLine[] = [];
  #waiting: (() => void)[] = [];

  debug = (fields: object, message: string) => this.#add("debug", fields, message);
  info = (fields: object, message: string) => this.#add("info", fields, message);
  warn = (fields: object, message: string) => this.#add("warn", fields, message);
  error = (fields: object, message: string) => this.#add("error", fields, message);

  async line(matches: (line: LogLine) => boolean): Promise<LogLine> {
    for (;;) {
      const found = this.lines.find(matches);
      if (found) return found;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #add(level: keyof Log, fields: object, message: string): void {
    this.lines.push({ level, fields: { ...fields }, message });
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

export interface ApiUnderTest extends ApiServers {
  readonly limits: ApiLimits;
  readonly log: RecordingLog;
  readonly health: HealthSwitch;
  /** As after a revocation. */
  recheckStreams(): void;
  grpc(): Transport;
}

interface Options {
  readonly routes?: (router: ConnectRouter) => void;
  /** After those of every server. */
  readonly interceptors?: readonly Interceptor[];
  readonly http?: (app: FastifyInstance) => void | Promise<void>;
  readonly fallback?: Fallback;
  readonly authenticate?: (
    headers: { get(name: string): string | null },
    peer: Peer,
    method: string,
  ) => Promise<SignedIn>;
  readonly recheckStreamsEvery?: Duration;
  readonly tls?: TlsMaterial;
  readonly browsers?: BrowserRules;
  readonly closeWithin?: Duration;
  /** Those that are left out are as wide as for a server without a configuration. */
  readonly limits?: Partial<LimitRules>;
}

/** Both servers on free ports of loopback, with health and reflection beside the given routes. */
export async function startApi(options: Options = {}): Promise<ApiUnderTest> {
  const log = new RecordingLog();
  const limits = new ApiLimits({ log, rules: { ...WIDE_LIMITS, ...options.limits } });
  const health = new HealthSwitch(true);
  const authenticate =
    options.authenticate ?? (async (_headers, peer) => ({ name: "tester", roles: ["admin"], address: peer.address }));
  const frame = createCallFrame({
    log,
    authenticate: (headers, peer, method) =>
      authenticate(headers, { certificate: null, certificateError: null, ...peer }, method),
    ...(options.recheckStreamsEvery !== undefined && { recheckStreamsEvery: options.recheckStreamsEvery }),
  });
  const servers = await startApiServers({
    grpcListen: { host: "127.0.0.1", port: 0 },
    httpListen: { host: "127.0.0.1", port: 0 },
    ...(options.fallback && { fallback: options.fallback }),
    ...frame,
    interceptors: [...frame.interceptors, ...(options.interceptors ?? [])],
    routes(router) {
      options.routes?.(router);
      healthRoutes(router, health);
      reflectionRoutes(router);
    },
    http: (app) => options.http?.(app),
    log,
    limits,
    closeWithin: options.closeWithin ?? seconds(10),
    ...(options.tls === undefined ? {} : { tls: options.tls }),
    ...(options.browsers && { browsers: options.browsers }),
  });
  const { recheckStreams } = frame;
  return {
    ...servers,
    log,
    limits,
    health,
    recheckStreams,
    grpc: () => createGrpcTransport({ baseUrl: `http://${servers.grpcAddress}` }),
  };
}

/** The error that a call ended with. */
export async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  return call.then(
    () => Promise.reject(new Error("the call succeeded")),
    (error) => ConnectError.from(error),
  );
}

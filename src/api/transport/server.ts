import { Code, ConnectError, type ConnectRouter, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import { AppError } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import type { AccessSink } from "./access/access-log.ts";
import {
  type BrowserGuard,
  type BrowserRules,
  createBrowserGuard,
  namesOfCertificate,
} from "./browsers/browser-guard.ts";
import { COMPRESSION } from "./compression.ts";
import { createGrpcListener } from "./grpc-listener.ts";
import { createHttpListener } from "./http-listener.ts";
import { ApiLimits } from "./limits/api-limits.ts";
import {
  API_LIMITS,
  type Fallback,
  type Listener,
  type ListenerOptions,
  renewTls,
  type TlsMaterial,
} from "./listener.ts";

export interface ListenAddress {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
}

export interface ApiServersOptions {
  readonly grpcListen: ListenAddress;
  readonly httpListen: ListenAddress;
  /** All services; called once per port. */
  readonly routes: (router: ConnectRouter) => void;
  readonly interceptors: readonly Interceptor[];
  readonly requestGate?: (context: HandlerContext) => void | Promise<void>;
  /** What is no RPC: operations. */
  readonly http: (app: FastifyInstance) => void | Promise<void>;
  /** Answers what no route answers on the HTTP port. Absent: nothing does. */
  readonly fallback?: Fallback;
  /** Ports for the networks of machines, with routes of their own and nothing else. */
  readonly machinePorts?: readonly MachinePort[];
  readonly log: Log;
  /** Told of the line that each request leaves in the log. */
  readonly onAccess?: AccessSink["onAccess"];
  readonly tls?: TlsMaterial;
  /** From where browsers may call, beside loopback, IP addresses and the names in the certificate. Absent: from nowhere else. */
  readonly browsers?: BrowserRules;
  /** What callers are held to. Absent: limits that only a flood meets. */
  readonly limits?: ApiLimits;
  /** How long `close` lets calls in flight come to their end. */
  readonly closeWithin?: Duration;
}

/** A port that machines or BMCs reach. It answers its own routes, by whatever name their network gives us, and nothing else. */
export interface MachinePort {
  readonly setting: MachinePortSetting;
  readonly listen: ListenAddress;
  readonly http: (app: FastifyInstance) => void | Promise<void>;
  readonly tls?: Omit<TlsMaterial, "clientCa">;
}
export type MachinePortSetting = "boot.listen" | "bmc.listen";

export interface ApiServers {
  /** `host:port`, usable by a client on this machine. */
  readonly grpcAddress: string;
  readonly httpUrl: string;
  /** Of the machine ports, by their settings. */
  readonly machineUrls: Readonly<Partial<Record<MachinePortSetting, string>>>;
  /** What new connections are shown, on every port that speaks TLS. */
  renewTls(tls: TlsMaterial): void;
  /**
   * Stops accepting, ends streams with UNAVAILABLE, gives calls in flight `closeWithin`, then cuts them off. Always resolves,
   * and may be called again.
   */
  close(): Promise<void>;
}

/** Serves every method on both ports: gRPC over HTTP/2 on one; Connect, gRPC-Web and JSON over HTTP/1.1 on the other. */
export async function startApiServers(options: ApiServersOptions): Promise<ApiServers> {
  const shutdown = new AbortController();
  let served = options.tls;
  const shared: ListenerOptions = {
    rpc: {
      routes: options.routes,
      interceptors: [...options.interceptors],
      ...(options.requestGate === undefined ? {} : { requestGate: options.requestGate }),
      shutdownSignal: shutdown.signal,
      readMaxBytes: API_LIMITS.maxMessageBytes,
      ...COMPRESSION,
      // A misspelt field is an error that names it, not a filter that is silently off.
      jsonOptions: { ignoreUnknownFields: false },
    },
    log: options.log,
    onAccess: options.onAccess,
    tls: options.tls,
    guard: guardOf(options, () => served),
    limits: options.limits ?? new ApiLimits({ log: options.log }),
  };
  const grpc = createGrpcListener(shared);
  const http = await createHttpListener({ ...shared, fallback: options.fallback }, options.http);
  const machinePorts = await Promise.all(
    (options.machinePorts ?? []).map((port) => openMachinePort(port, options, shared.limits)),
  );
  const closeWithin = options.closeWithin ?? seconds(10);

  const closeAll = async (): Promise<void> => {
    shutdown.abort(new ConnectError("the server is stopping; call again", Code.Unavailable));
    const listeners = [grpc, http, ...machinePorts.map(({ listener }) => listener)];
    await Promise.all(listeners.map((listener) => listener.close(closeWithin)));
  };
  try {
    const grpcAt = await listen(grpc, options.grpcListen, "grpc.listen");
    const httpAt = await listen(http, options.httpListen, "http.listen");
    const machineUrls: Partial<Record<MachinePortSetting, string>> = {};
    for (const { listener, port } of machinePorts)
      machineUrls[port.setting] = urlOf(await listen(listener, port.listen, port.setting), port.tls);
    let closed: Promise<void> | undefined;
    return {
      grpcAddress: grpcAt,
      httpUrl: urlOf(httpAt, options.tls),
      machineUrls,
      renewTls(tls) {
        served = tls;
        for (const listener of [grpc, http]) renewTls(listener, tls);
        for (const { listener } of machinePorts) renewTls(listener, { cert: tls.cert, key: tls.key });
      },
      close() {
        closed ??= closeAll();
        return closed;
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

const urlOf = (at: string, tls: object | undefined): string => `${tls === undefined ? "http" : "https"}://${at}`;

async function openMachinePort(port: MachinePort, { log, onAccess, browsers }: ApiServersOptions, limits: ApiLimits) {
  const guard = createBrowserGuard({ hosts: [], origins: browsers?.origins ?? [], isForMachines: true });
  return { port, listener: await createHttpListener({ log, onAccess, guard, limits, tls: port.tls }, port.http) };
}

/** The names in the certificate are ours: no browser takes it for another. */
function guardOf(
  { browsers = { hosts: [], origins: [] } }: ApiServersOptions,
  served: () => TlsMaterial | undefined,
): BrowserGuard {
  let read: { readonly tls: TlsMaterial; readonly names: readonly string[] } | undefined;
  const certified = () => {
    const tls = served();
    if (tls === undefined) return [];
    if (read?.tls !== tls) read = { tls, names: namesOfCertificate(tls.cert) };
    return read.names;
  };
  return createBrowserGuard({ ...browsers, certified });
}

const WILDCARDS: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "[::1]" };

/** By the settings that give their addresses. */
const SERVED_AT = {
  "grpc.listen": "gRPC",
  "http.listen": "HTTP",
  "boot.listen": "machines that boot",
  "bmc.listen": "BMCs",
} as const;

/** System errors of a port that cannot be had. */
const PORT_TROUBLE = ["EADDRINUSE", "EADDRNOTAVAIL", "EACCES"];

async function listen(
  listener: Listener,
  { host, port }: ListenAddress,
  setting: keyof typeof SERVED_AT,
): Promise<string> {
  const { server } = listener;
  const what = SERVED_AT[setting];
  await new Promise<void>((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      const why =
        error.code === "EADDRINUSE" ? "another process listens there already; choose another port" : error.message;
      const message = `cannot listen on ${host}:${port} for ${what}: ${why}`;
      const isPort = PORT_TROUBLE.includes(error.code ?? "");
      reject(isPort ? anotherPort(setting, message, error) : new Error(message, { cause: error }));
    };
    server.once("error", failed);
    server.listen({ host, port }, () => {
      server.off("error", failed);
      resolve();
    });
  });
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error(`no port was given to ${what}`);
  const shown = WILDCARDS[bound.address] ?? (bound.family === "IPv6" ? `[${bound.address}]` : bound.address);
  return `${shown}:${bound.port}`;
}

/** The operator can do something about it. */
function anotherPort(setting: keyof typeof SERVED_AT, message: string, cause: Error): AppError {
  const words = setting.split(".");
  const [flag, variable] = [`--${words.join("-")}`, `MILLWRIGHT_${words.join("_").toUpperCase()}`];
  const next = `set ${setting} (${flag} or ${variable}) to another host:port; port 0 takes a free one`;
  return new AppError("failed_precondition", message, { next }, { cause });
}

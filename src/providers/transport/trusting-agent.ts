import { Agent, type AgentOptions } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import type { Duplex } from "node:stream";
import { connect, type TLSSocket } from "node:tls";
import type { TlsTrust } from "../../capabilities/bmc-target.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { StepFailure } from "../../kernel/errors.ts";
import { type Duration, describeDuration } from "../../kernel/time/duration.ts";
import { bmcFailure } from "./bmc-failure.ts";
import { type BmcEndpoint, nameOf } from "./bmc-gateway.ts";
import { ownTrouble } from "./own-trouble.ts";
import { isUntrusted, transportCause } from "./transport-cause.ts";

export interface TrustingAgentOptions {
  /** PEM. Without any, those that the runtime trusts. */
  readonly caCertificates?: readonly string[];
  readonly connectTimeout: Duration;
}

/** What Node hands from the request to the agent, with our own member. */
interface ConnectOptions {
  readonly host?: string | null;
  readonly port?: number | string | null;
  readonly trust?: TlsTrust;
  readonly noun?: string | undefined;
  readonly lookup?: LookupFunction;
}

type OnConnected = (error: Error | null, socket: Duplex) => void;

/**
 * HTTPS connections whose certificate is judged per target, before a single byte of the request (and so of the password) is
 * sent. A connection is used again only by requests with the same trust.
 */
export class TrustingAgent extends Agent {
  readonly #trusting: TrustingAgentOptions;

  constructor(trusting: TrustingAgentOptions, options: AgentOptions) {
    super(options);
    this.#trusting = trusting;
  }

  override getName(options?: ConnectOptions): string {
    const trust = options?.trust ?? { mode: "ca" };
    const pin = trust.mode === "pin" ? (trust.fingerprint256 ?? "first") : "";
    return `${options?.host}:${options?.port}:${trust.mode}:${pin}`;
  }

  override createConnection(options: ConnectOptions, callback?: OnConnected): undefined {
    const endpoint = { address: options.host ?? "", port: Number(options.port), noun: options.noun };
    const trust = options.trust ?? { mode: "ca" };
    const { caCertificates, connectTimeout } = this.#trusting;
    const socket = connect({
      host: endpoint.address,
      port: endpoint.port,
      ...(options.lookup && { lookup: options.lookup }),
      ...(isIP(endpoint.address) === 0 ? { servername: endpoint.address } : {}),
      ...(caCertificates === undefined ? {} : { ca: [...caCertificates] }),
      rejectUnauthorized: trust.mode === "ca",
      ALPNProtocols: ["http/1.1"],
    });
    const timer = setTimeout(
      () => socket.destroy(new Error(`no connection within ${describeDuration(connectTimeout)}`)),
      connectTimeout,
    );
    const onError = (error: Error) => {
      clearTimeout(timer);
      callback?.(connectFailure(endpoint, error), socket);
    };
    // A peer that hangs up in the handshake ends the socket without an error.
    const onClose = () => onError(new Error("the connection was closed during the TLS handshake"));
    socket.once("error", onError).once("close", onClose);
    socket.once("secureConnect", () => {
      clearTimeout(timer);
      socket.off("error", onError).off("close", onClose);
      const failure = pinFailure(endpoint, trust, noteFingerprint(socket));
      if (failure === undefined) {
        callback?.(null, socket);
      } else {
        socket.on("error", () => undefined).destroy();
        callback?.(failure, socket);
      }
    });
    return undefined;
  }
}

// Noted when the connection is made: Node tells a connection's certificate reliably only once.
const fingerprints = new WeakMap<object, string>();

export const fingerprintOf = (socket: object): string | undefined => fingerprints.get(socket);

function noteFingerprint(socket: TLSSocket): string | undefined {
  const fingerprint = socket.getPeerX509Certificate()?.fingerprint256;
  if (fingerprint !== undefined) fingerprints.set(socket, fingerprint);
  return fingerprint;
}

const normal = (fingerprint: string): string => fingerprint.replaceAll(":", "").trim().toUpperCase();

function pinFailure(endpoint: BmcEndpoint, trust: TlsTrust, seen: string | undefined): DeviceFailure | undefined {
  if (trust.mode !== "pin" || trust.fingerprint256 === undefined) return undefined;
  if (seen !== undefined && normal(seen) === normal(trust.fingerprint256)) return undefined;
  return bmcFailure(
    "certificate_changed",
    endpoint,
    `${nameOf(endpoint)} shows a certificate with fingerprint ${seen ?? "(none)"}, but ${trust.fingerprint256} was pinned on first use. ` +
      "Nothing was sent to it. If the BMC was replaced or given a new certificate, compare the fingerprint at the BMC and accept it (machine accept-certificate, power-shelf accept-certificate); otherwise find out who answers at this address",
    { facts: { expected: trust.fingerprint256, ...(seen !== undefined && { shown: seen }) } },
  );
}

function connectFailure(endpoint: BmcEndpoint, error: Error): StepFailure {
  if (error instanceof DeviceFailure) return error;
  const own = ownTrouble(error);
  if (own) return own;
  if (isUntrusted(error)) {
    return bmcFailure(
      "certificate_untrusted",
      endpoint,
      `${nameOf(endpoint)} shows a certificate that is not trusted (${transportCause(error)}). ` +
        "Add its CA to bmc.ca_file, or set the trust of this BMC to pin",
      { cause: error },
    );
  }
  return bmcFailure("unreachable", endpoint, `${nameOf(endpoint)} cannot be reached: ${transportCause(error)}`, {
    cause: error,
  });
}

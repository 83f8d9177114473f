import { Agent as HttpAgent, type IncomingMessage, type RequestOptions } from "node:http";
import type { BmcTarget, TlsTrust } from "../../capabilities/bmc-target.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { seconds } from "../../kernel/time/duration.ts";
import { checkAddress, guardedLookup, type MayReach } from "./allowed-networks.ts";
import { bmcFailure } from "./bmc-failure.ts";
import { nameOf } from "./bmc-gateway.ts";
import type { Answer } from "./http-answer.ts";
import { isNotHttp, RequestFailed, requestAnswer, requestText } from "./http-request.ts";
import { ownTrouble } from "./own-trouble.ts";
import { type ListReading, NotAList } from "./reading/read-list.ts";
import { readText, TooLarge } from "./reading/read-text.ts";
import { transportCause } from "./transport-cause.ts";
import { fingerprintOf, TrustingAgent } from "./trusting-agent.ts";
import { sendUpload, type Upload } from "./upload/send-upload.ts";

export interface Outgoing {
  readonly target: BmcTarget;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Of the body; JSON unless it is something else. */
  readonly contentType?: string;
  /** In the place of a body. */
  readonly upload?: Upload;
  /** How a large list is read. Absent: the answer is text. */
  readonly list?: ListReading;
  readonly signal: AbortSignal;
}

/** An idle connection that the BMC closed just as we wrote to it: it never saw the request, which may be sent again. */
class StaleConnection extends Error {}

/** As many as kept connections there may be to one place: all of them can have gone stale at once. */
const STALE_CONNECTIONS = 2;

/** Sends again what never arrived, because the kept connection had just been closed at the other end. */
export async function despiteStaleConnections<T>(
  { target, method, path }: Pick<Outgoing, "target" | "method" | "path">,
  send: () => Promise<T>,
): Promise<T> {
  for (let stale = 0; ; stale += 1) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof StaleConnection)) throw error;
      if (stale === STALE_CONNECTIONS) {
        const message = `${nameOf(target)} cannot be reached: it cuts the connection at ${method} ${path}`;
        throw bmcFailure("unreachable", target, message, { cause: error });
      }
    }
  }
}

/** An answer of which more may follow. Whoever has it ends `body`, which belongs to no signal; without it the text is all. */
export interface OpenAnswer extends Answer {
  readonly body?: IncomingMessage;
}

export interface HttpExchange {
  send(outgoing: Outgoing): Promise<Answer>;
  /** Asks for a stream of this type, over a connection of its own. Any other answer is read to its end. */
  open(outgoing: Outgoing, type: string): Promise<OpenAnswer>;
  close(): void;
}

/** Idle connections are dropped before most BMCs drop them, so that we rarely write into a closing one. */
const IDLE_CONNECTION = seconds(4);
const CONNECT_TIMEOUT = seconds(10);

/**
 * HTTP over connections that are kept and used again, one pool for all BMCs: the gateway bounds how many each gets.
 * (The built-in `fetch` cannot judge a certificate per target, hence this.)
 */
export function createHttpExchange(options: {
  readonly caCertificates?: readonly string[];
  readonly mayReach?: MayReach;
  /** False: nothing is sent without TLS. */
  readonly plainHttp?: boolean;
  readonly largestAnswer: number;
}): HttpExchange {
  const { mayReach, plainHttp = true } = options;
  const lookup = mayReach && guardedLookup(mayReach);
  const kept = { keepAlive: true, maxFreeSockets: 2, timeout: IDLE_CONNECTION, scheduling: "lifo" } as const;
  const trusting = {
    connectTimeout: CONNECT_TIMEOUT,
    ...(options.caCertificates === undefined ? {} : { caCertificates: options.caCertificates }),
  };
  const agents = {
    https: { reading: new TrustingAgent(trusting, kept), changing: new TrustingAgent(trusting, { keepAlive: false }) },
    http: { reading: new HttpAgent(kept), changing: new HttpAgent({ keepAlive: false }) },
  };
  const optionsOf = (
    { target, method, path, headers, body, contentType = "application/json", upload }: Outgoing,
    connection: "reading" | "changing",
  ): RequestOptions & { readonly trust: TlsTrust; readonly noun: string | undefined } => {
    checkAddress(target.address, mayReach, target.noun === undefined ? undefined : { at: "bmc", name: target.noun });
    if (target.scheme === "http" && !plainHttp)
      throw bmcFailure(
        "plain_http_not_allowed",
        target,
        `${nameOf(target)} is to be called over plain HTTP, where everybody on the way reads the password: nothing was sent`,
      );
    return {
      ...(lookup && { lookup }),
      host: target.address,
      port: target.port,
      method,
      path,
      agent: agents[target.scheme][connection],
      trust: target.trust,
      noun: target.noun,
      headers: {
        accept: "application/json",
        ...headers,
        ...(body !== undefined && { "content-type": contentType, "content-length": Buffer.byteLength(body) }),
        ...(upload && { "content-type": upload.contentType, "content-length": upload.bytes }),
      },
    };
  };
  return {
    async send(outgoing) {
      // A command goes over a connection of its own: on a kept one that breaks, nobody could say whether it was carried out.
      const request = optionsOf(outgoing, outgoing.method === "GET" ? "reading" : "changing");
      return exchange(outgoing, request, options.largestAnswer);
    },
    async open(outgoing, type) {
      const headers = { ...outgoing.headers, accept: type };
      return opening(outgoing, optionsOf({ ...outgoing, headers }, "changing"), {
        type,
        largest: options.largestAnswer,
      });
    },
    close() {
      for (const { reading, changing } of Object.values(agents)) {
        reading.destroy();
        changing.destroy();
      }
    },
  };
}

async function exchange(outgoing: Outgoing, options: RequestOptions, largestAnswer: number): Promise<Answer> {
  const { target, signal, body, upload, list } = outgoing;
  const isSecure = target.scheme === "https";
  try {
    const { socket, ...answer } = upload
      ? await sendUpload({ options, isSecure, upload, largestAnswer })
      : await requestText({ options, isSecure, body, signal, largestAnswer, list });
    return { ...answer, ...shownBy(socket) };
  } catch (error) {
    throw failureOf(outgoing, error, largestAnswer);
  }
}

/** A peer that is gone without a word is found out by the system. */
const PROBE_AFTER = seconds(30);

async function opening(
  outgoing: Outgoing,
  options: RequestOptions,
  { type, largest }: { readonly type: string; readonly largest: number },
): Promise<OpenAnswer> {
  const { target, signal } = outgoing;
  try {
    const { response, release } = await requestAnswer({ options, isSecure: target.scheme === "https", signal });
    const { headers, socket, statusCode: status = 0 } = response;
    const answer = { status, headers, ...shownBy(socket) };
    const isStream = status === 200 && headers["content-type"]?.split(";")[0]?.trim().toLowerCase() === type;
    try {
      if (!isStream) return { ...answer, text: await readText(response, largest) };
      socket.setKeepAlive(true, PROBE_AFTER);
      return { ...answer, text: "", body: response };
    } catch (error) {
      response.destroy();
      throw new RequestFailed(error, false);
    } finally {
      release();
    }
  } catch (error) {
    throw failureOf(outgoing, error, largest);
  }
}

function shownBy(socket: object): Pick<Answer, "certificateFingerprint"> {
  const certificateFingerprint = fingerprintOf(socket);
  return certificateFingerprint === undefined ? {} : { certificateFingerprint };
}

function failureOf(outgoing: Outgoing, error: unknown, largestAnswer: number): unknown {
  if (!(error instanceof RequestFailed)) return error;
  const { cause, isOnKeptConnection } = error;
  if (cause instanceof DeviceFailure) return cause;
  if (cause instanceof NotAList) return notAList(outgoing, cause);
  return cause instanceof TooLarge
    ? tooLarge(outgoing, largestAnswer)
    : transportFailure(outgoing, isOnKeptConnection, cause);
}

function notAList({ target, method, path }: Outgoing, { message }: NotAList): DeviceFailure {
  const what = `the answer to ${method} ${path.split("?")[0]} is not a list: ${message}`;
  return bmcFailure("protocol", target, `${nameOf(target)}: ${what}`);
}

function tooLarge({ target, method, path }: Outgoing, largest: number): DeviceFailure {
  return bmcFailure(
    "protocol",
    target,
    `${nameOf(target)}: the answer to ${method} ${path} is larger than ${largest} bytes, more than any that we ask for should be`,
    { disposition: "fail" },
  );
}

function transportFailure({ target, method, path }: Outgoing, reused: boolean, error: unknown): Error {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (reused && method === "GET" && (code === "ECONNRESET" || code === "EPIPE")) return new StaleConnection();
  const own = ownTrouble(error);
  if (own) return own;
  if (isNotHttp(error)) {
    return bmcFailure("protocol", target, `${nameOf(target)} does not answer ${method} ${path} in HTTP (${code})`, {
      cause: error,
    });
  }
  return bmcFailure(
    "unreachable",
    target,
    `${nameOf(target)} cannot be reached: ${method} ${path}: ${transportCause(error)}`,
    {
      cause: error,
    },
  );
}

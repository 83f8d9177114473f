import { Agent as HttpAgent, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { rootCertificates } from "node:tls";
import { type DeviceCause, DeviceFailure } from "../../capabilities/device-failure.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import { type Called, checkAddress, guardedLookup, type MayReach } from "./allowed-networks.ts";
import { ownTrouble } from "./own-trouble.ts";
import { transportCause } from "./transport-cause.ts";

/** The rest of a file, from where we are. */
export interface Downloading {
  /** Where the bytes begin: 0 where the server sends all of it, whatever was asked for. */
  readonly start: number;
  /** Of the whole file; null where the server does not say. */
  readonly total: number | null;
  /** The server sends all of it, whatever was asked for. */
  readonly isWhole: boolean;
  /** What the server says of this version of the file, such as its ETag; empty where it says nothing. */
  readonly version: string;
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Ends the connection; harmless once it has ended. */
  close(): void;
}

export interface DownloadRequest {
  readonly url: string;
  /** The bytes that are here already. */
  readonly from: number;
  /** The last byte; absent: all that follow. */
  readonly to?: number;
  readonly secretHeaders: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export interface DownloadOptions {
  /** Where files may be downloaded from. */
  readonly mayReach: MayReach;
  /** PEM: trusted beside those that the runtime trusts. */
  readonly caCertificates?: readonly string[];
  /** Whom messages name. Absent: a server of firmware files. */
  readonly called?: Called;
}

export type Download = (request: DownloadRequest) => Promise<Downloading | "nothing_left">;

const MOST_REDIRECTS = 5;
/** A server that sends nothing for so long is asked again. */
const LONGEST_SILENCE: Duration = seconds(60);
/** Such as too many requests: `Retry-After` counts up to this. */
const LONGEST_PAUSE_MS = 15 * 60_000;

/**
 * Asks for a file, from where an earlier attempt has come. Every address is checked just before it is connected to, also those that a
 * server leads on to, and no header that proves who we are goes to another host or over a connection that others can read.
 */
export function createDownload(options: DownloadOptions): Download {
  const { mayReach, caCertificates, called = ARTIFACT_SERVER } = options;
  const agents = {
    https: new HttpsAgent({
      keepAlive: false,
      ...(caCertificates && { ca: [...rootCertificates, ...caCertificates] }),
    }),
    http: new HttpAgent({ keepAlive: false }),
  };
  return async (request) => {
    const first: Place = { url: new URL(request.url), called };
    let at = first;
    for (let redirects = 0; ; redirects += 1) {
      const isSafe = isSafeFor(at, first);
      const response = await ask(at, agents, mayReach, {
        ...request,
        secretHeaders: isSafe ? request.secretHeaders : {},
      });
      const next = leadsTo(response, at.url);
      if (next === undefined) return readAnswer(response, at, first, request);
      response.destroy();
      if (redirects === MOST_REDIRECTS)
        throw failure("protocol", at, `leads on more than ${MOST_REDIRECTS} times`, { disposition: "fail" });
      if (next.protocol !== "https:" && (next.protocol !== "http:" || first.url.protocol === "https:"))
        throw failure("protocol", at, `leads on to ${next.protocol}//, which is not as safe`, { disposition: "fail" });
      at = { url: next, called };
    }
  };
}

function leadsTo({ statusCode = 0, headers }: IncomingMessage, at: URL): URL | undefined {
  const isRedirect = [301, 302, 303, 307, 308].includes(statusCode);
  return isRedirect && headers.location !== undefined && URL.canParse(headers.location, at.href)
    ? new URL(headers.location, at)
    : undefined;
}

/** Without user, password and query: those may be secrets. */
const nameOf = ({ protocol, host, pathname }: URL): string => `${protocol}//${host}${pathname}`;
const ARTIFACT_SERVER: Called = {
  at: "artifact_server",
  name: "artifact server",
  setting: "firmware.allowed_networks",
};

/** What is asked, and whom messages name for it. */
interface Place {
  readonly url: URL;
  readonly called: Called;
}

const isSafeFor = ({ url }: Place, first: Place): boolean => url.protocol === "https:" && url.host === first.url.host;

function ask(
  place: Place,
  agents: { readonly https: HttpsAgent; readonly http: HttpAgent },
  mayReach: MayReach,
  { from, to, secretHeaders, signal }: DownloadRequest,
): Promise<IncomingMessage> {
  const { url: at, called } = place;
  const host = at.hostname.replace(/^\[(.*)\]$/, "$1");
  checkAddress(host, mayReach, called);
  const isSecure = at.protocol === "https:";
  const options: RequestOptions = {
    host,
    port: at.port === "" ? (isSecure ? 443 : 80) : Number(at.port),
    path: `${at.pathname}${at.search}`,
    method: "GET",
    agent: isSecure ? agents.https : agents.http,
    lookup: guardedLookup(mayReach, called),
    headers: {
      accept: "*/*",
      "accept-encoding": "identity",
      ...secretHeaders,
      ...((from > 0 || to !== undefined) && { range: `bytes=${from}-${to ?? ""}` }),
    },
  };
  return new Promise((resolve, reject) => {
    const request = (isSecure ? httpsRequest : httpRequest)(options);
    const onAbort = () => request.destroy();
    signal.addEventListener("abort", onAbort, { once: true });
    request.once("close", () => signal.removeEventListener("abort", onAbort));
    request.setTimeout(LONGEST_SILENCE, () =>
      request.destroy(failure("timed_out", place, "has sent nothing for a minute")),
    );
    request.on("error", (error) => reject(failedAt(place, error, signal)));
    request.on("response", resolve);
    if (signal.aborted) onAbort();
    else request.end();
  });
}

function readAnswer(
  response: IncomingMessage,
  at: Place,
  first: Place,
  { from, secretHeaders, signal }: DownloadRequest,
): Downloading | "nothing_left" {
  const { statusCode: status = 0, headers } = response;
  const open = (start: number, total: number | null): Downloading => ({
    start,
    total,
    isWhole: status === 200,
    version: [headers.etag, headers["last-modified"]].filter((each) => each !== undefined).join(" "),
    chunks: chunksOf(response, at, signal),
    close: () => void response.destroy(),
  });
  const length = Number(headers["content-length"] ?? Number.NaN);
  if (status === 200) return open(0, Number.isSafeInteger(length) ? length : null);
  const [, start = "", total = ""] =
    /^bytes (\d{1,15})-\d{1,15}\/(\d{1,15}|\*)$/.exec(headers["content-range"] ?? "") ?? [];
  if (status === 206 && start !== "" && Number(start) === from) return open(from, total === "*" ? null : Number(total));
  response.destroy();
  if (status === 416 && from > 0) return "nothing_left";
  throw refusal(at, first, status, headers["retry-after"], Object.keys(secretHeaders).length > 0);
}

async function* chunksOf(response: IncomingMessage, at: Place, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response) yield chunk as Uint8Array;
  } catch (error) {
    throw failedAt(at, error, signal);
  }
}

function refusal(
  at: Place,
  first: Place,
  status: number,
  retryAfter: string | undefined,
  hadToken: boolean,
): DeviceFailure {
  if (status === 401 || status === 403) {
    const why = !hadToken
      ? "the record has no token"
      : isSafeFor(at, first)
        ? "the token of the record does not do"
        : "the token is not sent to other hosts, nor unencrypted";
    return failure(status === 401 ? "credentials_rejected" : "forbidden", at, `answers ${status}: ${why}`, { status });
  }
  if (status === 404 || status === 410)
    return failure("not_found_there", at, `answers ${status}: there is no such file`, { status });
  if (status === 429 || status >= 500) {
    const pause = Number(retryAfter) * 1_000;
    return failure("busy", at, `answers ${status}`, {
      status,
      ...(pause > 0 && { retryAfterMs: Math.min(pause, LONGEST_PAUSE_MS) }),
    });
  }
  return failure("protocol", at, `answers ${status}`, { status, disposition: "fail" });
}

const failure = (
  code: DeviceCause,
  { url, called }: Place,
  did: string,
  options: ConstructorParameters<typeof DeviceFailure>[3] = {},
): DeviceFailure =>
  new DeviceFailure(code, called.at, `the ${called.name} at ${nameOf(url)} ${did}`, {
    ...options,
    facts: { address: url.host },
  });

function failedAt(at: Place, error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof StepFailure) return error;
  const own = ownTrouble(error);
  if (own) return own;
  return failure("unreachable", at, `cannot be reached: ${transportCause(error)}`, { cause: error });
}

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Log } from "../../../kernel/log.ts";
import { shownPath } from "./shown-path.ts";

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/** What the parts that serve a request know of it, as they learn it. */
export interface AccessNote {
  /** `package.Service/Method`, or `GET /path/{parameter}`: never with the values of parameters, which may be secrets. */
  readonly method?: string;
  readonly caller?: string | null;
  readonly requestId?: string;
  /** Of an answer whose HTTP status does not say how it ended. */
  readonly code?: string;
  /** Somebody else writes the line of this request. */
  readonly isLogged?: boolean;
}

const notes = new WeakMap<Request, AccessNote>();

/** Adds to what is known of a request. */
export function noteAccess(request: Request, note: AccessNote): void {
  notes.set(request, { ...notes.get(request), ...note });
}

/** One line a request: how it ended, who called and from where. */
export interface AccessLine {
  readonly method: string;
  /** The word of a gRPC code, or an HTTP status. */
  readonly code: string | number;
  readonly ms: number;
  readonly address: string | null;
  /** Null: nobody signed in. */
  readonly caller: string | null;
  readonly requestId: string;
}

/** Probes and scrapes come every few seconds, for ever; agents and BMCs fetch in many small pieces. */
const QUIET_METHOD = /^grpc\.health\.|^\w+ \/(healthz|readyz|metrics)$/;
const QUIET_WHEN_SERVED = /^\w+ \/(internal|files|seeds|firmware)\//;

/** Where the lines go. */
export interface AccessSink {
  readonly log: Log;
  /** Told of each line. */
  readonly onAccess?: ((line: AccessLine) => void) | undefined;
}

export function writeAccess({ log, onAccess }: AccessSink, access: AccessLine): void {
  const { ms, ...line } = access;
  onAccess?.(access);
  const fields = { ...line, ms: Math.round(ms) };
  const isServed = typeof line.code === "number" && line.code < 400;
  const isQuiet = QUIET_METHOD.test(line.method) || (isServed && QUIET_WHEN_SERVED.test(line.method));
  if (isQuiet) log.debug(fields, "request");
  else log.info(fields, "request");
}

/** A caller who leaves before the answer is through has ended the request: no error of ours, and none of the caller's. */
const HUNG_UP = 499;

const ends = new WeakMap<Request, (() => void)[]>();
const over = new WeakSet<Request>();

/** Has something done once the request is over, whether its answer was received or not; at once where it is over already. */
export function onceOver(request: Request, act: () => void): void {
  if (over.has(request)) act();
  else ends.set(request, [...(ends.get(request) ?? []), act]);
}

/** Writes the line of a request at its end, unless an RPC has written its own by then. */
export function followAccess(sink: AccessSink, request: Request, response: Response, address: string | null): void {
  const startedAt = performance.now();
  response.once("close", () => {
    over.add(request);
    for (const act of ends.get(request) ?? []) act();
    const { isLogged, method, code, caller = null, requestId = "" } = notes.get(request) ?? {};
    if (isLogged) return;
    const isAnswered = "stream" in response ? response.stream.writableFinished : response.writableFinished;
    writeAccess(sink, {
      method: method ?? `${request.method} ${shownPath(request.url ?? "")}`,
      code: code ?? (isAnswered ? response.statusCode : HUNG_UP),
      ms: performance.now() - startedAt,
      ...{ address, caller, requestId },
    });
  });
}

const BROKEN_OFF = new Set(["ECONNRESET", "EPIPE", "ERR_STREAM_PREMATURE_CLOSE", "ABORT_ERR"]);

/** Whether a request failed since its caller has gone. Other failures are bugs, whether somebody still listens or not. */
export const isHungUp = ({ socket }: Request, cause: unknown): boolean =>
  socket.destroyed && cause instanceof Error && "code" in cause && BROKEN_OFF.has(String(cause.code));

import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { type ListReading, readTextOrList } from "./reading/read-list.ts";

export interface Requested {
  readonly options: RequestOptions;
  readonly isSecure: boolean;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
  /** In bytes; an answer that is larger is not read to its end. */
  readonly largestAnswer: number;
  /** Absent: the answer is read as text. */
  readonly list?: ListReading | undefined;
}

export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Empty where the answer was read as a list. */
  readonly text: string;
  readonly list?: readonly unknown[];
  readonly socket: Socket;
}

/** No answer, or only a part of one. `cause` says why. */
export class RequestFailed extends Error {
  /** Whether it went over a connection that was kept from before, which the other end may have closed at that moment. */
  readonly isOnKeptConnection: boolean;
  constructor(cause: unknown, isOnKeptConnection: boolean) {
    super("the request failed", { cause });
    this.isOnKeptConnection = isOnKeptConnection;
  }
}

/** An answer whose body is still to be read. */
interface BegunAnswer {
  readonly response: IncomingMessage;
  readonly isOnKeptConnection: boolean;
  /** From here on the signal has no say: who reads the body ends it. */
  release(): void;
}

/** Bytes came that are not HTTP. */
export const isNotHttp = (error: unknown): boolean =>
  error instanceof Error && "code" in error && typeof error.code === "string" && error.code.startsWith("HPE_");

/**
 * One request, and its answer read to the end.
 *
 * @throws RequestFailed, also when `signal` is aborted.
 */
export async function requestText({ largestAnswer, list, ...requested }: Requested): Promise<Received> {
  const { response, isOnKeptConnection, release } = await requestAnswer(requested);
  const { socket } = response; // an answer that is read has none any more
  try {
    const read = await readTextOrList(response, { list, largest: largestAnswer });
    return { status: response.statusCode ?? 0, headers: response.headers, ...read, socket };
  } catch (error) {
    response.destroy();
    throw new RequestFailed(error, isOnKeptConnection);
  } finally {
    release();
  }
}

/**
 * One request, up to where its answer begins. The signal ends the answer as well, until it is released from that.
 *
 * @throws RequestFailed, also when `signal` is aborted.
 */
export function requestAnswer({
  options,
  isSecure,
  body,
  signal,
}: Omit<Requested, "largestAnswer" | "list">): Promise<BegunAnswer> {
  return new Promise((resolve, reject) => {
    const request = (isSecure ? httpsRequest : httpRequest)(options);
    // The signal is not given to the request: Node would tie it to the connection, which outlives the request.
    const onAbort = () => request.destroy(new Error("stopped"));
    const release = () => signal.removeEventListener("abort", onAbort);
    signal.addEventListener("abort", onAbort, { once: true });
    // It stays: what breaks after the answer began is told here as well.
    request.on("error", (error) => {
      release();
      reject(new RequestFailed(error, request.reusedSocket));
    });
    request.on("response", (response) => resolve({ response, isOnKeptConnection: request.reusedSocket, release }));
    if (signal.aborted) onAbort();
    else request.end(body);
  });
}

import { request as httpRequest, type IncomingHttpHeaders, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { readText } from "./read-text.ts";

export interface Requested {
  readonly options: RequestOptions;
  readonly isSecure: boolean;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
  /** In bytes; an answer that is larger is not read to its end. */
  readonly largestAnswer: number;
}

export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
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

/** Bytes came that are not HTTP. */
export const isNotHttp = (error: unknown): boolean =>
  error instanceof Error && "code" in error && typeof error.code === "string" && error.code.startsWith("HPE_");

/**
 * One request, and its answer read to the end.
 *
 * @throws RequestFailed, also when `signal` is aborted.
 */
export function requestText({ options, isSecure, body, signal, largestAnswer }: Requested): Promise<Received> {
  return new Promise((resolve, reject) => {
    const request = (isSecure ? httpsRequest : httpRequest)(options);
    // The signal is not given to the request: Node would tie it to the connection, which outlives the request.
    const onAbort = () => request.destroy(new Error("stopped"));
    const done = () => signal.removeEventListener("abort", onAbort);
    const fail = (error: unknown) => {
      done();
      reject(new RequestFailed(error, request.reusedSocket));
    };
    signal.addEventListener("abort", onAbort, { once: true });
    request.on("error", fail);
    request.on("response", (response) => {
      const { socket } = response;
      readText(response, largestAnswer).then(
        (text) => {
          done();
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, socket });
        },
        (error) => {
          response.destroy();
          fail(error);
        },
      );
    });
    if (signal.aborted) onAbort();
    else request.end(body);
  });
}

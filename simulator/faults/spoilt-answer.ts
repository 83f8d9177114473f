import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { TransportTrouble } from "./fault-book.ts";

/** Garbage is by nature an answer to something that was done; everything else keeps the device from doing it. */
export const isSpoiltBefore = ({ ending }: TransportTrouble): boolean =>
  ending !== undefined && (ending.when ?? (ending.type === "garbage" ? "after" : "before")) === "before";

export interface SpoiltRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Answers in the form of the API at hand; an absent body is for it to fill in. */
  sendError(status: number, body: unknown, headers: Readonly<Record<string, string>>): void;
  /** The beginning of an answer that breaks off. */
  readonly garbage: string;
}

/** Ends a request as the fault rule says. */
export function spoil(ending: TransportTrouble["ending"], on: SpoiltRequest): void {
  switch (ending?.type) {
    case "status":
      on.sendError(ending.status, ending.body, ending.headers ?? {});
      break;
    case "garbage":
      on.response.writeHead(200, { "Content-Type": "application/json" });
      on.response.end(on.garbage);
      break;
    case "hang":
      break; // The connection stays open and silent until the client has had enough.
    default:
      on.request.socket.destroy();
  }
}

export async function delayWhileConnected(ms: number, request: IncomingMessage): Promise<void> {
  const gone = new AbortController();
  const abort = () => gone.abort();
  request.socket.once("close", abort);
  try {
    await delay(ms, undefined, { signal: gone.signal });
  } finally {
    request.socket.off("close", abort);
  }
}

import { setTimeout as pause } from "node:timers/promises";
import { printLine } from "../terminal/printing.ts";
import { isDisconnection, reasonOf } from "./errors.ts";
import type { Session } from "./session.ts";

const FIRST_PAUSE_MS = 250;
const MOST_PAUSE_MS = 5_000;
/** What is not our server refuses or resets a connection at once. */
const LASTED_MS = 1_000;

/**
 * A stream that is opened again when it breaks off; `open` says where to go on. One that never came up is an error, and so is
 * what the server refuses.
 */
export async function* reconnecting<T>(
  { terminal }: Pick<Session, "terminal">,
  open: () => AsyncIterable<T>,
  signal: AbortSignal,
): AsyncGenerator<T> {
  let isHeard = false;
  let isBroken = false;
  let nextPause = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    const openedAt = terminal.now().getTime();
    let lost = "the server ended the stream";
    try {
      for await (const message of open()) {
        nextPause = FIRST_PAUSE_MS;
        isBroken = false;
        isHeard = true;
        yield message;
      }
      isHeard = true;
    } catch (error) {
      if (signal.aborted) return;
      // A stream over which nothing came for a while was one all the same: there was nothing to tell.
      isHeard ||= terminal.now().getTime() - openedAt > LASTED_MS;
      if (!isHeard || !isDisconnection(error)) throw error;
      lost = reasonOf(error);
    }
    if (signal.aborted) return;
    if (!isBroken) printLine(terminal.stderr, `connection lost (${lost}); trying again`);
    isBroken = true;
    await pause(nextPause, undefined, { signal }).catch(() => undefined);
    nextPause = Math.min(nextPause * 2, MOST_PAUSE_MS);
  }
}

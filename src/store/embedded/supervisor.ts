import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";

const LOOK_EVERY_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

export interface Supervised {
  isUp(): boolean;
  bringUp(signal: AbortSignal): Promise<void>;
}

/**
 * Brings the server up again when it dies under us, by the kernel's out-of-memory killer for one: nobody else would.
 * The returned function ends the supervision and resolves when nothing of it is under way any more.
 */
export function supervise(server: Supervised, log: Log): () => Promise<void> {
  const stop = new AbortController();
  const ended = runSupervision(server, log, stop.signal);
  return () => {
    stop.abort();
    return ended;
  };
}

async function runSupervision(server: Supervised, log: Log, signal: AbortSignal): Promise<void> {
  let pause = LOOK_EVERY_MS;
  for (;;) {
    await delay(pause, undefined, { signal, ref: false }).catch(() => {}); // aborted: seen in the next line
    if (signal.aborted) return;
    pause = LOOK_EVERY_MS;
    if (server.isUp()) continue;
    log.error({}, "the embedded database died: starting it again");
    try {
      await server.bringUp(signal);
    } catch (error) {
      if (signal.aborted) return;
      pause = LONGEST_PAUSE_MS;
      log.error({ error: messageOf(error), retryInMs: pause }, "the embedded database did not come up again");
    }
  }
}

import { setTimeout as pause } from "node:timers/promises";
import { messageOf } from "../kernel/errors.ts";
import type { Log } from "../kernel/log.ts";
import { pauseBefore, retrying } from "../kernel/time/retry.ts";

export type Loop = (signal: AbortSignal) => Promise<void>;

export interface Loops {
  /** Which loops are down and why; null when all run. */
  trouble(): string | null;
  /** Resolves when all of them have ended. */
  stop(): Promise<void>;
}

/** Keeps loops running: one that ends or throws is started again after a growing pause, and is named meanwhile. */
export function superviseLoops(loops: { readonly [name: string]: Loop }, log: Log): Loops {
  const stopping = new AbortController();
  const down = new Map<string, string>();

  async function keep(name: string, loop: Loop): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted; ) {
      const startedAt = performance.now();
      try {
        await loop(stopping.signal);
        if (stopping.signal.aborted) return;
        down.set(name, "it ended by itself");
      } catch (error) {
        down.set(name, messageOf(error));
        log.error({ err: error, loop: name }, "a loop failed; it is started again");
      }
      failures = performance.now() - startedAt > retrying.most ? 1 : failures + 1;
      await pause(pauseBefore(failures, retrying), undefined, { signal: stopping.signal }).catch(() => undefined);
      down.delete(name);
    }
  }

  const running = Object.entries(loops).map(([name, loop]) => keep(name, loop));
  return {
    trouble: () => (down.size === 0 ? null : [...down].map(([name, why]) => `${name}: ${why}`).join("; ")),
    async stop() {
      stopping.abort();
      await Promise.all(running);
    },
  };
}

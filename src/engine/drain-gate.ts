import { once } from "node:events";
import type { Loop } from "./supervisor.ts";

/** Has loops that take up work stop, and start again, while the process goes on. */
export class DrainGate {
  #closing = new AbortController();
  #opening = new AbortController();

  set(isDraining: boolean): void {
    if (isDraining === this.#closing.signal.aborted) return;
    if (isDraining) {
      this.#opening = new AbortController();
      this.#closing.abort();
    } else {
      this.#closing = new AbortController();
      this.#opening.abort();
    }
  }

  /** The loop hands over what it has when the gate closes, as when it is stopped, and runs again once it is open. */
  guard(loop: Loop): Loop {
    return async (signal) => {
      while (!signal.aborted) {
        const closing = this.#closing.signal;
        if (closing.aborted) await untilAborted(AbortSignal.any([this.#opening.signal, signal]));
        else await this.#runOnce(loop, signal, closing);
      }
    };
  }

  guardAll(loops: Readonly<Record<string, Loop>>): Record<string, Loop> {
    return Object.fromEntries(Object.entries(loops).map(([name, loop]) => [name, this.guard(loop)]));
  }

  async #runOnce(loop: Loop, signal: AbortSignal, closing: AbortSignal): Promise<void> {
    await loop(AbortSignal.any([signal, closing]));
    // The supervisor has to see one that ends by itself.
    if (!closing.aborted && !signal.aborted) throw new Error("it ended by itself");
  }
}

const untilAborted = async (signal: AbortSignal): Promise<void> => {
  if (!signal.aborted) await once(signal, "abort");
};

import type { Log } from "../telemetry/log.ts";

/** Stops what was started, the last first; one part that fails to stop does not keep the others running. */
export class Undo {
  readonly #log: Log;
  readonly #steps: { readonly what: string; readonly stop: () => Promise<unknown> }[] = [];
  #running: Promise<void> | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  add(what: string, stop: () => Promise<unknown>): void {
    this.#steps.push({ what, stop });
  }

  run(): Promise<void> {
    this.#running ??= this.#stopAll();
    return this.#running;
  }

  async #stopAll(): Promise<void> {
    for (let step = this.#steps.pop(); step; step = this.#steps.pop()) {
      try {
        await step.stop();
      } catch (error) {
        this.#log.error({ err: error }, `${step.what} did not stop cleanly`);
      }
    }
  }
}

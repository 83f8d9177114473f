import type { Log } from "../kernel/log.ts";

interface Step {
  readonly what: string;
  readonly stop: () => Promise<unknown>;
  readonly abandon: () => void;
}

/** Stops what was started, the last first; one part that fails to stop does not keep the others running. */
export class StopSequence {
  readonly #log: Log;
  readonly #steps: Step[] = [];
  /** Also those under way: an impatient end must reach them. */
  readonly #unfinished = new Set<Step>();
  #running: Promise<void> | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** `abandon` is for an end that cannot wait: at once, without an answer. */
  add(what: string, stop: () => Promise<unknown>, abandon: () => void = () => {}): void {
    const step = { what, stop, abandon };
    this.#steps.push(step);
    this.#unfinished.add(step);
  }

  run(): Promise<void> {
    this.#running ??= this.#stopAll();
    return this.#running;
  }

  abandon(): void {
    for (const { what, abandon } of this.#unfinished) {
      try {
        abandon();
      } catch (error) {
        this.#log.error({ err: error }, `${what} could not be ended`);
      }
    }
  }

  async #stopAll(): Promise<void> {
    for (let step = this.#steps.pop(); step; step = this.#steps.pop()) {
      try {
        await step.stop();
      } catch (error) {
        this.#log.error({ err: error }, `${step.what} did not stop cleanly`);
      }
      this.#unfinished.delete(step);
    }
  }
}

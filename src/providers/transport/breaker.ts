import type { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { Duration } from "../../kernel/time/duration.ts";

export interface BreakerOptions {
  readonly failuresToOpen: number;
  /** How long the first opening lasts; each failed probe doubles it, up to `openForMax`. */
  readonly openFor: Duration;
  readonly openForMax: Duration;
}

/** What is said again to those that are not let through. */
export type Why = Pick<DeviceFailure, "code" | "message" | "facts">;

export interface Opening {
  /** What the last one that was let through met with. */
  readonly why: Why;
  /** On the monotonic clock. */
  readonly until: number;
}

/**
 * Stops asking a BMC that does not answer. Closed → open after failures in a row → one probe when the time is up →
 * closed or open again, for longer. Holds no timer: it is asked.
 */
export class Breaker {
  readonly #options: BreakerOptions;
  #failures = 0;
  #openings = 0;
  #opening: Opening | undefined;

  constructor(options: BreakerOptions) {
    this.#options = options;
  }

  get failuresInARow(): number {
    return this.#failures;
  }

  /** Whether nothing may pass now, one probe may, or all. */
  state(monotonic: number): "closed" | "open" | "half_open" {
    if (this.#opening === undefined) return "closed";
    return monotonic < this.#opening.until ? "open" : "half_open";
  }

  get opening(): Opening | undefined {
    return this.#opening;
  }

  succeeded(): void {
    this.#failures = 0;
    this.#openings = 0;
    this.#opening = undefined;
  }

  failed(monotonic: number, why: Why): void {
    this.#failures += 1;
    // Requests that were under way when it opened report late; only a probe may prolong the opening.
    if (this.state(monotonic) === "open") return;
    if (this.#opening === undefined && this.#failures < this.#options.failuresToOpen) return;
    const length = Math.min(this.#options.openFor * 2 ** this.#openings, this.#options.openForMax);
    this.#openings += 1;
    this.#opening = { why, until: monotonic + length };
  }
}

import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";

/** Between two nudges of one device. */
const GAP: Duration = seconds(1);
/** As many in a row; then one each time that the device would have been polled. */
const BURST = 10;

/**
 * Turns what is heard of one device into nudges: the first at once, then one a second at most. A device that reports without end is
 * read no more often than one that reports nothing: some report the very requests that read them.
 *
 * Each nudge is followed by one more. A device may report before its resources show what it reports.
 */
export class NudgePacer {
  readonly #nudge: () => void;
  readonly #every: Duration;
  readonly #clock: Clock;
  #timer: NodeJS.Timeout | undefined;
  #isNews = false;
  #nudgedAt = Number.NEGATIVE_INFINITY;
  #saved = BURST;
  #countedAt: number;

  /** `every`: how often the device is polled without events. */
  constructor(nudge: () => void, { every, clock }: { readonly every: Duration; readonly clock: Clock }) {
    this.#nudge = nudge;
    this.#every = every;
    this.#clock = clock;
    this.#countedAt = clock.monotonic();
  }

  heard(): void {
    this.#isNews = true;
    this.#arrange();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #arrange(): void {
    if (this.#timer !== undefined) return;
    const now = this.#clock.monotonic();
    this.#saved = Math.min(BURST, this.#saved + (now - this.#countedAt) / this.#every);
    this.#countedAt = now;
    const wait = Math.max(0, this.#nudgedAt + GAP - now, (1 - this.#saved) * this.#every);
    if (wait === 0) this.#fire();
    else this.#timer = setTimeout(() => this.#fire(), wait);
  }

  #fire(): void {
    this.#timer = undefined;
    this.#saved -= 1;
    this.#nudgedAt = this.#clock.monotonic();
    const wasNews = this.#isNews;
    this.#isNews = false;
    this.#nudge();
    if (wasNews) this.#arrange();
  }
}

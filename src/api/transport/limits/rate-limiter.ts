import type { Clock } from "../../../kernel/time/clock.ts";
import { type Duration, milliseconds } from "../../../kernel/time/duration.ts";

export interface RateRules {
  readonly perSecond: number;
  /** What somebody who was quiet may do at once. */
  readonly burst: number;
  readonly clock: Pick<Clock, "monotonic">;
}

interface Bucket {
  left: number;
  at: number;
}

/** Of those who have been quiet the longest the count is given up: they have all of their burst again, or nearly so. */
const MOST_KEPT = 20_000;

/** How often each of many may do something: so often a second, and a burst besides. */
export class RateLimiter {
  readonly #rules: RateRules;
  /** In the order of their last use. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(rules: RateRules) {
    this.#rules = rules;
  }

  get burst(): number {
    return this.#rules.burst;
  }

  /** Counts one. Undefined: it is admitted; else after how long the next one is. */
  take(key: string): Duration | undefined {
    const bucket = this.#filled(key);
    if (bucket.left < 1) return this.#until(bucket);
    bucket.left -= 1;
    return undefined;
  }

  /** The same without counting. */
  look(key: string): Duration | undefined {
    const bucket = this.#filled(key);
    return bucket.left < 1 ? this.#until(bucket) : undefined;
  }

  /** Of whoever has the least left, how much of the burst is used. */
  fullest(): number {
    const now = this.#rules.clock.monotonic();
    let least = this.#rules.burst;
    for (const bucket of this.#buckets.values()) least = Math.min(least, this.#leftAt(bucket, now));
    return Math.floor(this.#rules.burst - least);
  }

  #filled(key: string): Bucket {
    const now = this.#rules.clock.monotonic();
    const bucket = this.#buckets.get(key) ?? { left: this.#rules.burst, at: now };
    bucket.left = this.#leftAt(bucket, now);
    bucket.at = now;
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > MOST_KEPT) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    return bucket;
  }

  #leftAt({ left, at }: Bucket, now: number): number {
    return Math.min(this.#rules.burst, left + (Math.max(0, now - at) / 1_000) * this.#rules.perSecond);
  }

  #until({ left }: Bucket): Duration {
    return milliseconds(Math.ceil(((1 - left) / this.#rules.perSecond) * 1_000));
  }
}

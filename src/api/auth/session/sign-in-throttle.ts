import { AppError } from "../../../kernel/errors.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import { minutes } from "../../../kernel/time/duration.ts";
import { addressGroup } from "../../transport/limits/client-address.ts";

const WINDOW = minutes(1);
/** People mistype; programs guess. */
const MOST_FAILURES = 10;

/**
 * Refuses sign-ins for a while after too many failed ones from one address. Not from all together: then a few strangers could keep
 * everybody out, and a token is too long to be guessed from any number of addresses.
 */
export class SignInThrottle {
  readonly #clock: Clock;
  #failures = new Map<string, number>();
  #since = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Throws while the address has to wait. */
  admit(address: string | null): void {
    const left = this.#since + WINDOW - this.#clock.monotonic();
    if (left <= 0) return;
    if (this.#count(groupOf(address)) < MOST_FAILURES) return;
    const seconds = Math.ceil(left / 1_000);
    throw new AppError("exhausted", `too many failed sign-ins; try again in ${seconds} s`, { retryAfterMs: left });
  }

  failed(address: string | null): void {
    const now = this.#clock.monotonic();
    if (now >= this.#since + WINDOW) {
      this.#since = now;
      this.#failures = new Map();
    }
    this.#failures.set(groupOf(address), this.#count(groupOf(address)) + 1);
  }

  #count(key: string): number {
    return this.#failures.get(key) ?? 0;
  }
}

const groupOf = (address: string | null): string => (address === null ? "unknown" : addressGroup(address));

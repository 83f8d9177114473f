import type { Clock } from "../../../kernel/time/clock.ts";
import { type Duration, hours, minutes } from "../../../kernel/time/duration.ts";

/** What machines that nobody knows are held to when they boot, by the word of its metrics. */
export type DiscoveryLimit = "discovered" | "discovered_per_minute" | "discovered_per_address";

export interface DiscoveryRules {
  /** Nodes that await approval. */
  readonly most: number;
  /** New ones a minute, at this replica. */
  readonly perMinute: number;
  /** New ones an hour from one address, at this replica. */
  readonly perAddress: number;
  readonly isExempt: (address: string) => boolean;
  /** What counts as one address: a host has a whole network of IPv6. */
  readonly placeOf: (address: string) => string;
  readonly clock: Pick<Clock, "monotonic">;
  readonly refused: (limit: DiscoveryLimit, fields: Readonly<Record<string, unknown>>) => void;
}

/** Further addresses push out the one that has been silent for longest. */
const MOST_ADDRESSES = 10_000;

/** How fast machines that nobody knows are put on record: a stranger can invent as many addresses as there are. */
export class DiscoveryGate {
  readonly rules: DiscoveryRules;
  readonly #all: Allowance;
  readonly #byAddress = new Map<string, Allowance>();

  constructor(rules: DiscoveryRules) {
    this.rules = rules;
    this.#all = new Allowance(rules.perMinute, minutes(1), rules.clock.monotonic());
  }

  /** The limit that is reached; undefined: one more may be put on record, and is counted. */
  take(address: string | null): DiscoveryLimit | undefined {
    const now = this.rules.clock.monotonic();
    const { isExempt, placeOf } = this.rules;
    const isHeld = address === null || !isExempt(address);
    if (isHeld && !this.#of(placeOf(address ?? ""), now).take(now)) return "discovered_per_address";
    return this.#all.take(now) ? undefined : "discovered_per_minute";
  }

  #of(place: string, now: number): Allowance {
    const allowance = this.#byAddress.get(place) ?? new Allowance(this.rules.perAddress, hours(1), now);
    this.#byAddress.delete(place);
    this.#byAddress.set(place, allowance);
    const [oldest] = this.#byAddress.keys();
    if (this.#byAddress.size > MOST_ADDRESSES && oldest !== undefined) this.#byAddress.delete(oldest);
    return allowance;
  }
}

/** So many in each time, all at once if need be. */
class Allowance {
  readonly #most: number;
  readonly #in: Duration;
  #left: number;
  #at: number;

  constructor(most: number, within: Duration, now: number) {
    this.#most = most;
    this.#in = within;
    this.#left = most;
    this.#at = now;
  }

  take(now: number): boolean {
    this.#left = Math.min(this.#most, this.#left + ((now - this.#at) / this.#in) * this.#most);
    this.#at = now;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}

import { AppError } from "../../../kernel/errors.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import { type Duration, milliseconds, seconds } from "../../../kernel/time/duration.ts";

interface Spending {
  left: number;
  at: number;
}

/** Keys that are remembered; who is forgotten begins with a full budget. */
const MOST_KEYS = 20_000;

export interface Allowance {
  /** Calls at once. */
  readonly atOnce: number;
  /** And then one after each pause. */
  readonly every: Duration;
}

/** How many calls somebody may make. */
export class Budget {
  /** The one that was heard of longest ago comes first. */
  readonly #spent = new Map<string, Spending>();
  readonly #allowance: Allowance;
  readonly #clock: Pick<Clock, "monotonic">;

  constructor(allowance: Allowance, clock: Pick<Clock, "monotonic">) {
    this.#allowance = allowance;
    this.#clock = clock;
  }

  /** @throws AppError "exhausted" */
  spend(key: string): void {
    const spending = this.#of(key);
    if (spending.left < 1) throw tooMany();
    spending.left -= 1;
  }

  /** Whether anything is left; nothing is spent. @throws AppError "exhausted" */
  check(key: string): void {
    if (this.#of(key).left < 1) throw tooMany();
  }

  #of(key: string): Spending {
    const { atOnce, every } = this.#allowance;
    const now = this.#clock.monotonic();
    const known = this.#spent.get(key) ?? { left: atOnce, at: now };
    known.left = Math.min(atOnce, known.left + (now - known.at) / every);
    known.at = now;
    this.#spent.delete(key);
    this.#spent.set(key, known);
    const [oldest] = this.#spent.keys();
    if (this.#spent.size > MOST_KEYS && oldest !== undefined) this.#spent.delete(oldest);
    return known;
  }
}

const tooMany = (): AppError => new AppError("exhausted", "too many calls; try again later");

/** Of one address: refused enrolments. One that is accepted costs nothing, so that a rack behind one address comes up at once. */
export const REFUSED_ENROLMENTS: Allowance = { atOnce: 30, every: seconds(2) };
/** Of one agent. */
export const AGENT_CALLS: Allowance = { atOnce: 60, every: milliseconds(500) };

import type { Log } from "../../../kernel/log.ts";
import { type Clock, systemClock } from "../../../kernel/time/clock.ts";
import { seconds } from "../../../kernel/time/duration.ts";

/** Everything that callers are held to, by the word of its metrics and log lines. */
const LIMITS = [
  "connections",
  "connections_per_address",
  "headers",
  "idle_session",
  "control_frames",
  "discovered",
  "discovered_per_minute",
  "discovered_per_address",
  "requests_per_caller",
  "requests_per_address",
  "calls_per_caller",
  "streams_per_caller",
  "streams_per_address",
  "unread_bytes",
  "failed_sign_ins",
] as const;
export type Limit = (typeof LIMITS)[number];

/** How near a limit is. */
export interface LimitReading {
  readonly limit: Limit;
  readonly current: number;
  readonly most: number;
}

export interface LimitLedgerOptions {
  readonly log: Log;
  readonly clock?: Clock;
  /** Told of each refusal. */
  readonly refused?: (limit: Limit) => void;
}

const LOG_EVERY = seconds(10);

/** Who reaches a limit does so thousands of times a second: each refusal is counted, and one in ten seconds is logged. */
export class LimitLedger {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #refused: (limit: Limit) => void;
  readonly #lines = new Map<Limit, { until: number; unsaid: number }>();
  readonly #readers: { readonly limit: Limit; readonly most: number; readonly read: () => number }[] = [];

  constructor({ log, clock = systemClock, refused = () => {} }: LimitLedgerOptions) {
    this.#log = log;
    this.#clock = clock;
    this.#refused = refused;
  }

  /** What happens all the time, and is no attack. */
  count(limit: Limit): void {
    this.#refused(limit);
  }

  refuse(limit: Limit, fields: Readonly<Record<string, unknown>>): void {
    this.count(limit);
    const now = this.#clock.monotonic();
    const line = this.#lines.get(limit) ?? { until: Number.NEGATIVE_INFINITY, unsaid: 0 };
    this.#lines.set(limit, line);
    if (now < line.until) {
      line.unsaid += 1;
      return;
    }
    this.#log.warn({ limit, ...fields, ...(line.unsaid > 0 && { alsoRefused: line.unsaid }) }, "limit reached");
    line.until = now + LOG_EVERY;
    line.unsaid = 0;
  }

  /** Of each listener its own; the fullest is shown. */
  show(limit: Limit, most: number, read: () => number): void {
    this.#readers.push({ limit, most, read });
  }

  readings(): LimitReading[] {
    const readings = this.#readers.map(({ limit, most, read }) => ({ limit, most, current: read() }));
    return LIMITS.flatMap((limit) => {
      const [fullest] = readings.filter((one) => one.limit === limit).toSorted((a, b) => b.current - a.current);
      return fullest ? [fullest] : [];
    });
  }
}

import { setTimeout as pause } from "node:timers/promises";
import type { JournalTail } from "../src/engine/watch.ts";
import type { Database } from "../src/store/postgres/database.ts";
import type { Fleet } from "./fleet.ts";
import { percentile } from "./measurement.ts";

/** How many watch, and what they want. */
export interface Audience {
  readonly watchers: number;
  /** So many of them follow everything; each of the others follows one shelf of its own. */
  readonly followAll: number;
}

export interface WatcherSetting extends Audience {
  readonly db: Database;
  readonly fleet: Fleet;
  readonly tail: JournalTail;
}

export interface Watchers {
  /** Waits until every event that was sent is at everybody who wants it. Event `n` is of the shelf of watcher `n`, round and round. */
  arrivals(sentAt: readonly number[]): Promise<ArrivalSummary>;
  stop(): Promise<void>;
}

export interface ArrivalSummary {
  /** Milliseconds from the sending of COMMIT to the hands of a watcher. */
  readonly p50: number;
  readonly p99: number;
  readonly deliveriesPerSecond: number;
}

/** The present on a clock that all processes of this machine share. */
export const sharedNow = (): number => performance.timeOrigin + performance.now();

export const shelfOf = (watcher: number): string => `ps-${1 + watcher}`;
export const idsFor = (watcher: number, { followAll }: Audience): string[] =>
  watcher < followAll ? [] : [shelfOf(watcher)];

const PATIENCE_MS = 60_000;

/** What watchers keep of arrivals, and what is made of it in the end. */
export class Arrivals {
  readonly #numbers: number[] = [];
  readonly #times: number[] = [];

  /** Numbers below zero are of the warm-up. */
  add(n: number): void {
    if (n < 0) return;
    this.#numbers.push(n);
    this.#times.push(sharedNow());
  }

  async summarize(sentAt: readonly number[], audience: Audience): Promise<ArrivalSummary> {
    const { watchers, followAll } = audience;
    const expected = sentAt.reduce((sum, _, n) => sum + followAll + (n % watchers < followAll ? 0 : 1), 0);
    const deadline = performance.now() + PATIENCE_MS;
    while (this.#numbers.length < expected && performance.now() < deadline) await pause(50);
    if (this.#numbers.length !== expected) {
      throw new Error(`${this.#numbers.length} events arrived, not ${expected}`);
    }
    const latencies = this.#times.map((time, index) => time - (sentAt[this.#numbers[index] ?? 0] ?? Number.NaN));
    const lasted = (this.#times.at(-1) ?? 0) - (sentAt[0] ?? 0);
    return {
      p50: percentile(latencies, 0.5),
      p99: percentile(latencies, 0.99),
      deliveriesPerSecond: (expected * 1_000) / lasted,
    };
  }
}

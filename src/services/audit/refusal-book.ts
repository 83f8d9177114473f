import { setTimeout as pause } from "node:timers/promises";
import type { Log } from "../../kernel/log.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, minutes, seconds } from "../../kernel/time/duration.ts";
import type { Refusal, RefusedCalls } from "../../store/access/refused-calls.ts";

/** Stands for everybody whose calls have no row of their own. */
const OTHERS = "*";
/** Rows of a minute that name somebody; more are counted together. Callers choose their addresses, and so how many there are. */
const MOST_ROWS_A_MINUTE = 100;
/** While the database is away. */
const MOST_WAITING = 2_000;
const WRITE_EVERY: Duration = seconds(5);
const MOST_SHOWN = 5;

export interface RefusedCall {
  readonly address: string | null;
  readonly name: string | null;
  readonly method: string;
  readonly outcome: Refusal;
}

export interface RefusalBookOptions {
  readonly clock: Pick<Clock, "now">;
  readonly log: Log;
  /** Throws where it is not known to be written: it is then tried again. */
  readonly write: (counted: readonly RefusedCalls[]) => Promise<void>;
}

type Counted = { -readonly [field in keyof RefusedCalls]: RefusedCalls[field] };

const keyOf = ({ minute, address, name, method, outcome }: RefusedCalls): string =>
  JSON.stringify([minute.getTime(), address, name, method, outcome]);

/**
 * Counts refused calls in memory, and writes the sums a few seconds later: a flood of calls costs a handful of rows, and no call waits for
 * the database. What a killed server has counted since is lost; each call is in the log as well. A write whose answer was lost counts twice.
 */
export class RefusalBook {
  readonly #options: RefusalBookOptions;
  #waiting = new Map<string, Counted>();
  /** The rows of the minute that runs, for its limit and for what the log says at its end. */
  #minute = new Map<string, Counted>();
  #minuteAt = 0;

  constructor(options: RefusalBookOptions) {
    this.#options = options;
  }

  note({ address, name, method, outcome }: RefusedCall): void {
    const lastAt = this.#options.clock.now();
    const minute = new Date(Math.floor(lastAt.getTime() / minutes(1)) * minutes(1));
    if (minute.getTime() !== this.#minuteAt) this.#endMinute(minute);
    const own = { minute, address: address ?? "", name: name ?? "", method, outcome, calls: 1, lastAt };
    const isFull = this.#minute.size >= MOST_ROWS_A_MINUTE && !this.#minute.has(keyOf(own));
    const row = isFull ? { ...own, address: OTHERS, name: OTHERS, method: OTHERS } : own;
    add(this.#minute, row);
    add(this.#waiting, row);
  }

  /** Writes what has been counted; what cannot be written now waits for the next time. */
  async flush(): Promise<void> {
    const counted = this.#waiting;
    this.#waiting = new Map();
    try {
      if (counted.size > 0) await this.#options.write([...counted.values()]);
    } catch (err) {
      this.#options.log.warn({ err, rows: counted.size }, "refused calls could not be recorded; trying again");
      const newer = this.#waiting;
      this.#waiting = counted;
      for (const row of newer.values()) add(this.#waiting, row);
      for (const key of [...this.#waiting.keys()].slice(0, Math.max(0, this.#waiting.size - MOST_WAITING)))
        this.#waiting.delete(key);
    }
  }

  /** Until the signal; what is still in hand is written then. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(WRITE_EVERY, undefined, { signal, ref: false }).catch(() => undefined);
      const running = Math.floor(this.#options.clock.now().getTime() / minutes(1)) * minutes(1);
      if (running !== this.#minuteAt) this.#endMinute(new Date(running));
      await this.flush();
    }
    this.#endMinute(new Date(0));
  }

  /** One line for all refused calls of a minute. */
  #endMinute(next: Date): void {
    const rows = [...this.#minute.values()].toSorted((a, b) => b.calls - a.calls);
    this.#minute = new Map();
    this.#minuteAt = next.getTime();
    if (rows.length === 0) return;
    const sum = (of: Refusal) => rows.reduce((all, { outcome, calls }) => (outcome === of ? all + calls : all), 0);
    this.#options.log.warn(
      {
        refused: sum("refused"),
        failedSignIns: sum("sign_in_failed"),
        addresses: new Set(rows.map(({ address }) => address)).size,
        most: rows
          .slice(0, MOST_SHOWN)
          .map(({ address, name, method, outcome, calls }) => ({ address, name, method, outcome, calls })),
      },
      "calls were refused within a minute",
    );
  }
}

function add(rows: Map<string, Counted>, row: RefusedCalls): void {
  const found = rows.get(keyOf(row));
  if (found === undefined) rows.set(keyOf(row), { ...row });
  else {
    found.calls += row.calls;
    if (row.lastAt > found.lastAt) found.lastAt = row.lastAt;
  }
}

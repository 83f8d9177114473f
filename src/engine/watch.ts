import { setTimeout as pause } from "node:timers/promises";
import { milliseconds, seconds } from "../kernel/duration.ts";
import type { EventSource, WatchItem } from "../services/watch.ts";
import type { Database } from "../store/database.ts";
import * as journal from "../store/journal.ts";
import type { StoreLog } from "../store/log.ts";
import { JournalWindow } from "./journal-window.ts";

const PAGE = 1_000;
const WINDOW_ROWS = 4_000;
/** A row may still be above the horizon when its NOTIFY arrives: look again soon, then ever less often. */
const FIRST_LOOK_AGAIN = milliseconds(5);
const IDLE_LOOK = milliseconds(500);
const BOOKMARK_EVERY = seconds(15);
/** When nobody has waited for news for this long, reading ahead serves nobody: who is behind reads for itself. */
const READ_AHEAD_FOR = seconds(2);

/**
 * Follows the journal for all watchers of this process with one reader. Who keeps up is served from a small window in
 * memory; who does not reads the journal itself, page by page, at its own pace.
 */
export class JournalTail implements EventSource {
  readonly #db: Database;
  readonly #log: StoreLog;
  #window: JournalWindow | undefined;
  #followers = 0;
  /** Followers that have read everything, and when there last were any. */
  #waiting = 0;
  #lastWaited = Number.NEGATIVE_INFINITY;
  #nudge = Promise.withResolvers<void>();
  #arrival = Promise.withResolvers<void>();

  constructor(options: { readonly db: Database; readonly log: StoreLog }) {
    this.#db = options.db;
    this.#log = options.log;
  }

  get followers(): number {
    return this.#followers;
  }

  /** The journal may have grown. */
  nudge(): void {
    this.#nudge.resolve();
  }

  /** Reads ahead until the signal aborts; while nobody waits for news it reads nothing. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.nudge(), { once: true });
    let quiet = 0;
    while (!signal.aborted) {
      this.#nudge = Promise.withResolvers();
      let read = 0;
      try {
        read = await this.#readAhead();
      } catch (error) {
        this.#log.warn({ err: error }, "the journal cannot be read; trying again");
      }
      if (read === PAGE) continue;
      quiet = read > 0 ? 0 : quiet + 1;
      const wait = Math.min(FIRST_LOOK_AGAIN * 2 ** Math.min(quiet, 10), IDLE_LOOK);
      const timer = new AbortController();
      const nudged = await Promise.race([
        this.#nudge.promise.then(() => true),
        pause(wait, false, { signal: timer.signal, ref: false }).catch(() => false),
      ]);
      timer.abort();
      if (nudged) quiet = 0;
    }
    this.#arrival.resolve();
  }

  async *follow(
    from: { readonly cursor: string } | "now" | "oldest",
    filter: journal.JournalFilter,
    signal: AbortSignal,
  ): AsyncGenerator<WatchItem> {
    let cursor = from === "oldest" ? "0.0.0" : from === "now" ? await journal.currentCursor(this.#db) : from.cursor;
    journal.parseCursor(cursor);
    this.#followers += 1;
    try {
      if (from === "now") yield { type: "bookmark", cursor };
      let bookmarkAt = performance.now() + BOOKMARK_EVERY;
      while (!signal.aborted) {
        const arrival = this.#arrival.promise;
        const { rows, readTo } = await this.#next(cursor, filter);
        for (const row of rows) yield { type: "event", row };
        if (rows.length > 0) bookmarkAt = performance.now() + BOOKMARK_EVERY;
        const moved = readTo !== cursor;
        cursor = readTo;
        if (performance.now() > bookmarkAt) {
          yield { type: "bookmark", cursor };
          bookmarkAt = performance.now() + BOOKMARK_EVERY;
        }
        if (!moved) await this.#waitForNews(arrival, bookmarkAt - performance.now(), signal);
      }
    } finally {
      this.#followers -= 1;
    }
  }

  async #waitForNews(arrival: Promise<void>, most: number, signal: AbortSignal): Promise<void> {
    this.#waiting += 1;
    if (!this.#window) this.nudge();
    try {
      await firstOf(arrival, most, signal);
    } finally {
      this.#waiting -= 1;
      this.#lastWaited = performance.now();
    }
  }

  async #readAhead(): Promise<number> {
    if (this.#waiting === 0 && performance.now() - this.#lastWaited > READ_AHEAD_FOR) {
      this.#window = undefined;
      return 0;
    }
    if (!this.#window) {
      this.#window = new JournalWindow(await journal.currentCursor(this.#db), WINDOW_ROWS);
      this.#announceArrival(); // what came between a follower's own read and this moment is not in the window
    }
    const rows = await journal.readAfter(this.#db, this.#window.head, PAGE);
    if (rows.length === 0) return 0;
    this.#window.push(rows);
    this.#announceArrival();
    return rows.length;
  }

  #announceArrival(): void {
    this.#arrival.resolve();
    this.#arrival = Promise.withResolvers();
  }

  /** What comes after the cursor, and how far that goes: at least to the last row, and over what the filter left out. */
  async #next(
    cursor: string,
    filter: journal.JournalFilter,
  ): Promise<{ rows: readonly journal.JournalRow[]; readTo: string }> {
    const recent = this.#window?.after(cursor, PAGE);
    if (recent) return { rows: recent.filter((row) => matches(row, filter)), readTo: recent.at(-1)?.cursor ?? cursor };
    // Everything up to the head is settled, so a read that starts now sees all of it.
    const head = this.#window?.head ?? cursor;
    const rows = await journal.readAfter(this.#db, cursor, PAGE, filter);
    const last = rows.at(-1)?.cursor ?? cursor;
    return { rows, readTo: rows.length === PAGE || journal.compareCursors(last, head) > 0 ? last : head };
  }
}

function matches(row: journal.JournalRow, { kinds, ids, types }: journal.JournalFilter): boolean {
  const admits = (words: readonly string[] | undefined, word: string) =>
    !words || words.length === 0 || words.includes(word);
  return admits(kinds, row.kind) && admits(ids, row.id) && admits(types, row.type);
}

async function firstOf(arrival: Promise<void>, most: number, signal: AbortSignal): Promise<void> {
  const timer = new AbortController();
  const either = AbortSignal.any([timer.signal, signal]);
  await Promise.race([
    arrival,
    pause(Math.max(0, most), undefined, { signal: either, ref: false }).catch(() => undefined),
  ]);
  timer.abort();
}

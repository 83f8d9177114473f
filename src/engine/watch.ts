import { AppError } from "../kernel/errors.ts";
import type { Log } from "../kernel/log.ts";
import { milliseconds, seconds } from "../kernel/time/duration.ts";
import { ALARMS, alarmOf } from "../store/lifecycle/alarms.ts";
import type { EventSource, WatchFrom, WatchItem } from "../store/lifecycle/event-source.ts";
import * as journal from "../store/lifecycle/journal.ts";
import type { Database } from "../store/postgres/database.ts";
import { JournalWindow } from "./journal-window.ts";

const PAGE = 1_000;
/** What one follower has in hand: with thousands that do not read on, this is what each of them costs. */
const FOLLOWER_PAGE = 100;
const WINDOW_ROWS = 4_000;
/** A row may still be above the horizon when its NOTIFY arrives: read again soon, then ever less often. */
const FIRST_READ_AGAIN = milliseconds(5);
const IDLE_READ = milliseconds(500);
const BOOKMARK_EVERY = seconds(15);
/** How often waiting followers check whether their bookmark is due. */
const BOOKMARK_CHECK = seconds(5);
/** When nobody has waited for news for this long, reading ahead serves nobody: who is behind reads for itself. */
const READ_AHEAD_FOR = seconds(2);

/**
 * Follows the journal for all watchers of this process with one reader. Who keeps up is served from a small window in
 * memory; who does not reads the journal itself, page by page, at its own pace.
 */
export class JournalTail implements EventSource {
  readonly #db: Database;
  readonly #log: Log;
  /** Followers at the same time. */
  readonly #most: number;
  #window: JournalWindow | undefined;
  #followers = 0;
  /** Followers that have read everything, with what they want, by what wakes them; and when there last were any. */
  readonly #waiting = new Map<() => void, Wants>();
  #lastWaited = Number.NEGATIVE_INFINITY;
  #nudge = Promise.withResolvers<void>();
  /** Counts what followers may have to read; a follower waits only when it has seen the latest. */
  #arrivals = 0;
  /** Rows since all were woken last. */
  #unseen = 0;

  constructor(options: { readonly db: Database; readonly log: Log; readonly most?: number }) {
    this.#db = options.db;
    this.#log = options.log;
    this.#most = options.most ?? Number.POSITIVE_INFINITY;
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
    let rouseAt = performance.now() + BOOKMARK_CHECK;
    while (!signal.aborted) {
      this.#nudge = Promise.withResolvers();
      let read = 0;
      try {
        read = await this.#readAhead();
      } catch (error) {
        this.#log.warn({ err: error }, "the journal cannot be read; trying again");
      }
      if (performance.now() > rouseAt) {
        rouseAt = performance.now() + BOOKMARK_CHECK;
        this.#wakeAll();
      }
      if (read === PAGE) continue;
      quiet = read > 0 ? 0 : quiet + 1;
      const wait = Math.min(FIRST_READ_AGAIN * 2 ** Math.min(quiet, 10), IDLE_READ);
      let timer: NodeJS.Timeout | undefined;
      const waited = new Promise<false>((resolve) => {
        timer = setTimeout(() => resolve(false), wait).unref();
      });
      const nudged = await Promise.race([this.#nudge.promise.then(() => true), waited]);
      clearTimeout(timer);
      if (nudged) quiet = 0;
    }
    this.#wakeAll();
  }

  async *follow(from: WatchFrom, filter: journal.JournalFilter, signal: AbortSignal): AsyncGenerator<WatchItem> {
    const field = (typeof from === "object" && from.field) || "cursor";
    if (typeof from === "object") journal.parseCursor(from.cursor, field);
    this.#admit();
    const wants = wantsOf(filter);
    const waiter = { wake() {} };
    const onAbort = () => waiter.wake();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      let cursor =
        from === "oldest"
          ? journal.OLDEST_CURSOR
          : from === "now"
            ? await journal.currentCursor(this.#db)
            : from.cursor;
      if (from === "now") yield { type: "bookmark", cursor };
      if (typeof from === "object") await this.#checkHappened(cursor, field);
      let bookmarkAt = performance.now() + BOOKMARK_EVERY;
      while (!signal.aborted) {
        const seen = this.#arrivals;
        const { rows, readTo } = await this.#next(cursor, filter, wants, field);
        for (const row of rows) yield { type: "event", row };
        if (rows.length > 0) bookmarkAt = performance.now() + BOOKMARK_EVERY;
        const caughtUp = readTo === cursor || readTo === this.#window?.head;
        cursor = readTo;
        if (performance.now() > bookmarkAt) {
          yield { type: "bookmark", cursor };
          bookmarkAt = performance.now() + BOOKMARK_EVERY;
        }
        if (caughtUp && seen === this.#arrivals && !signal.aborted) await this.#waitForNews(waiter, wants);
      }
    } finally {
      this.#followers -= 1;
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Counted from here on: `follow` lets go of the place when it ends. */
  #admit(): void {
    if (this.#followers >= this.#most) {
      throw new AppError("exhausted", `watcher limit reached (${this.#most})`, {
        next: "watch at another replica, or later; an operator can raise watch.most",
      });
    }
    this.#followers += 1;
  }

  /**
   * One promise and an entry in a set: with a thousand followers this runs tens of thousands of times a second, where a timer
   * and a combined signal for each wait cost a hundred times as much.
   */
  async #waitForNews(waiter: { wake: () => void }, wants: Wants): Promise<void> {
    if (!this.#window) this.nudge();
    await new Promise<void>((resolve) => {
      waiter.wake = resolve;
      this.#waiting.set(resolve, wants);
    });
    this.#waiting.delete(waiter.wake);
    this.#lastWaited = performance.now();
  }

  /** Says so when retention has removed what would have come next, instead of leaving it out. */
  async #checkKept(cursor: string, field: string): Promise<void> {
    if (journal.compareCursors(cursor, await journal.forgottenTo(this.#db)) >= 0) return;
    throw refusal(field, "events after this cursor are no longer kept");
  }

  /** A cursor of another database, or of what a restored backup does not know any more: all that comes next would count as told. */
  async #checkHappened(cursor: string, field: string): Promise<void> {
    if (journal.compareCursors(cursor, await journal.latestCursor(this.#db)) <= 0) return;
    throw refusal(
      field,
      "is later than the last event of this server: it comes from another server, or from before a backup was restored",
    );
  }

  async #readAhead(): Promise<number> {
    if (this.#waiting.size === 0 && performance.now() - this.#lastWaited > READ_AHEAD_FOR) {
      this.#window = undefined;
      return 0;
    }
    if (!this.#window) {
      this.#window = new JournalWindow(await journal.currentCursor(this.#db), WINDOW_ROWS);
      this.#arrivals += 1;
      this.#wakeAll(); // what came between a follower's own read and this moment is not in the window
    }
    const rows = await journal.readAfter(this.#db, this.#window.head, PAGE);
    if (rows.length === 0) return 0;
    this.#window.push(rows);
    this.#announce(rows);
    return rows.length;
  }

  /** Wakes those who want one of the rows; and now and then all, so that nobody's place falls out of the window. */
  #announce(rows: readonly journal.JournalRow[]): void {
    this.#arrivals += 1;
    this.#unseen += rows.length;
    if (this.#unseen > WINDOW_ROWS / 2) this.#wakeAll();
    else for (const [wake, wants] of this.#waiting) if (rows.some(wants)) wake();
  }

  #wakeAll(): void {
    this.#unseen = 0;
    for (const wake of this.#waiting.keys()) wake();
  }

  /** What comes after the cursor, and how far that goes: at least to the last row, and over what the filter left out. */
  async #next(
    cursor: string,
    filter: journal.JournalFilter,
    wants: Wants,
    field: string,
  ): Promise<{ rows: readonly journal.JournalRow[]; readTo: string }> {
    const recent = this.#window?.after(cursor, FOLLOWER_PAGE);
    if (recent) return { rows: recent.filter(wants), readTo: recent.at(-1)?.cursor ?? cursor };
    // Everything up to the head is settled, so a read that starts now sees all of it.
    const head = this.#window?.head ?? cursor;
    const isOldest = cursor === journal.OLDEST_CURSOR;
    // What retention has kept of earlier times is history with gaps; events begin where none is missing.
    const from = isOldest ? await journal.forgottenTo(this.#db) : cursor;
    const rows = await journal.readAfter(this.#db, from, FOLLOWER_PAGE, filter);
    if (!isOldest) await this.#checkKept(cursor, field);
    const last = rows.at(-1)?.cursor ?? from;
    return { rows, readTo: rows.length === FOLLOWER_PAGE || journal.compareCursors(last, head) > 0 ? last : head };
  }
}

const refusal = (field: string, why: string): AppError =>
  new AppError("failed_precondition", `${field}: ${why}; list the things again and watch from now`, {
    field,
    next: `watch again without ${field}`,
  });

type Wants = (row: journal.JournalRow) => boolean;

/** As sets: every row that is written is compared with what every follower wants. */
function wantsOf({ kinds, ids, types }: journal.JournalFilter): Wants {
  const [ofKinds, ofIds, ofTypes] = [setOf(kinds), setOf(ids), setOf(types)];
  const wantsAlarms = ALARMS.some((alarm) => ofTypes?.has(alarm));
  const isOfTypes = (row: journal.JournalRow) =>
    !ofTypes || ofTypes.has(row.type) || (wantsAlarms && ofTypes.has(alarmOf(row) ?? ""));
  return (row) => (!ofKinds || ofKinds.has(row.kind)) && (!ofIds || ofIds.has(row.id)) && isOfTypes(row);
}

/** Nothing listed: everything is wanted. */
const setOf = (words: readonly string[] | undefined): ReadonlySet<string> | undefined =>
  words && words.length > 0 ? new Set(words) : undefined;

import type { JournalFilter, JournalRow } from "./journal.ts";

/** A bookmark says how far the journal has been read, also when nothing of it was of interest. */
export type WatchItem =
  | { readonly type: "event"; readonly row: JournalRow }
  | { readonly type: "bookmark"; readonly cursor: string };

/** Where events begin. `field` is what the caller calls the cursor, for answers; `cursor` unless it is given. */
export type WatchFrom = { readonly cursor: string; readonly field?: string } | "now" | "oldest";

export interface EventSource {
  /**
   * Events after the cursor, in order, each once; ends when the signal aborts. A slow consumer is simply not pulled: it
   * costs no memory, and goes on from where it was. A cursor is refused when what came after it is no longer kept, and when it
   * is later than all that has happened: who follows it would not be told of what happens next.
   */
  follow(from: WatchFrom, filter: JournalFilter, signal: AbortSignal): AsyncIterable<WatchItem>;
}

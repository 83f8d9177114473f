import type { JournalFilter, JournalRow } from "./journal.ts";

/** A bookmark says how far the journal has been read, also when nothing of it was of interest. */
export type WatchItem =
  | { readonly type: "event"; readonly row: JournalRow }
  | { readonly type: "bookmark"; readonly cursor: string };

export interface EventSource {
  /**
   * Events after the cursor, in order, each once; ends when the signal aborts. A slow consumer is simply not pulled: it
   * costs no memory, and goes on from where it was.
   */
  follow(
    from: { readonly cursor: string } | "now" | "oldest",
    filter: JournalFilter,
    signal: AbortSignal,
  ): AsyncIterable<WatchItem>;
}

import { AppError, messageOf } from "../kernel/errors.ts";
import { type JournalFilter, type JournalRow, parseCursor } from "../store/journal.ts";
import type { ServiceDeps } from "./deps.ts";
import { checkKind } from "./known-kinds.ts";

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

export interface WatchQuery {
  readonly kinds: readonly string[];
  readonly ids: readonly string[];
  readonly types: readonly string[];
  /** Empty: from the oldest event that is kept, or from now. */
  readonly fromCursor: string;
  readonly fromNow: boolean;
}

/** Checks what is asked for before anything is followed, so that a wrong question is answered at once. */
export function watchEvents(
  deps: ServiceDeps,
  events: EventSource,
  query: WatchQuery,
  signal: AbortSignal,
): AsyncIterable<WatchItem> {
  const { kinds, ids, types, fromCursor, fromNow } = query;
  for (const kind of kinds) checkKind(deps, kind, "kinds");
  if (fromNow && fromCursor !== "") {
    throw new AppError("invalid_argument", "from_now: not together with from_cursor", { field: "from_now" });
  }
  const begin = fromNow ? "now" : "oldest";
  return events.follow(fromCursor === "" ? begin : { cursor: checkCursor(fromCursor) }, { kinds, ids, types }, signal);
}

function checkCursor(cursor: string): string {
  try {
    parseCursor(cursor);
    return cursor;
  } catch (error) {
    throw new AppError("invalid_argument", `from_${messageOf(error)}`, { field: "from_cursor" });
  }
}

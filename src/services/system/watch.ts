import type { Reach } from "../../kernel/access/scope.ts";
import { AppError } from "../../kernel/errors.ts";
import type { EventSource, WatchItem } from "../../store/lifecycle/event-source.ts";
import { parseCursor } from "../../store/lifecycle/journal.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { checkKind } from "../call/known-kinds.ts";
import { eventsWithin } from "../call/reach.ts";

export type { EventSource, WatchItem };

export interface WatchQuery {
  readonly kinds: readonly string[];
  readonly ids: readonly string[];
  readonly types: readonly string[];
  /** Empty: from the oldest event that is kept, or from now. */
  readonly fromCursor: string;
  readonly fromNow: boolean;
  /** Only events of things within it. Undefined: all. */
  readonly reach: Reach | undefined;
}

/** Every event is compared with them, for as long as the watch lasts. */
const MOST_WORDS = 1_000;
const CURSOR_FIELD = "from_cursor";

/** Checks what is asked for before anything is followed, so that a wrong question is answered at once. */
export function watchEvents(
  deps: ServiceDeps,
  events: EventSource,
  query: WatchQuery,
  signal: AbortSignal,
): AsyncIterable<WatchItem> {
  const { kinds, ids, types, fromCursor, fromNow } = query;
  for (const [field, words] of Object.entries({ kinds, ids, types })) {
    if (words.length <= MOST_WORDS) continue;
    throw new AppError("invalid_argument", `${field}: at most ${MOST_WORDS} in one call, got ${words.length}`, {
      field,
    });
  }
  for (const kind of kinds) checkKind(deps, kind, "kinds");
  if (fromNow && fromCursor !== "") {
    throw new AppError("invalid_argument", "from_now: not together with from_cursor", { field: "from_now" });
  }
  if (fromCursor !== "") parseCursor(fromCursor, CURSOR_FIELD);
  const begin = fromNow ? "now" : "oldest";
  const from = fromCursor === "" ? begin : { cursor: fromCursor, field: CURSOR_FIELD };
  return eventsWithin(deps, events, query.reach).follow(from, { kinds, ids, types }, signal);
}

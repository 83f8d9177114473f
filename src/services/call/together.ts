import type { EventSource, WatchFrom, WatchItem } from "../../store/lifecycle/event-source.ts";
import type { JournalFilter } from "../../store/lifecycle/journal.ts";

interface Followed {
  readonly from: WatchFrom;
  readonly filter: JournalFilter;
  readonly signal: AbortSignal;
}

/** What is followed, in order, as many items in one as are there already: the first one waits for no other. */
export async function* together(
  events: EventSource,
  { from, filter, signal }: Followed,
  most: number,
): AsyncGenerator<readonly WatchItem[]> {
  // Who stops reading must not leave a source behind that waits for its next event.
  const stopped = new AbortController();
  const source = events.follow(from, filter, AbortSignal.any([signal, stopped.signal]))[Symbol.asyncIterator]();
  const read = () => {
    const next = source.next();
    next.catch(() => undefined); // it is thrown where it is awaited, after what came before it
    return next;
  };
  let next = read();
  try {
    for (;;) {
      const first = await next;
      if (first.done) return;
      const items = [first.value];
      for (next = read(); items.length < most; next = read()) {
        const more = await ifReady(next);
        if (more === undefined || more.done) break;
        items.push(more.value);
      }
      yield items;
    }
  } finally {
    stopped.abort();
    await source.return?.();
  }
}

/** Undefined: nothing is there yet, or it failed. */
const ifReady = <T>(next: Promise<T>): Promise<T | undefined> =>
  Promise.race([
    next.catch(() => undefined),
    new Promise<undefined>((resolve) => void setImmediate(() => resolve(undefined))),
  ]);

import type { Event } from "../../../contract/millwright/v1/event_pb.js";
import { reconnecting } from "./reconnecting.ts";
import type { Session } from "./session.ts";

export interface EventFilter {
  readonly kinds?: readonly string[];
  readonly ids?: readonly string[];
  readonly types?: readonly string[];
  /** A cursor to go on after, or where to begin. */
  readonly from: { readonly cursor: string } | "now" | "oldest";
}

/** `ready` comes once, when everything that happens from then on will be seen. */
export type Followed = { readonly type: "ready" } | { readonly type: "event"; readonly event: Event };

/**
 * Events as they happen, for as long as the reader wants them. A connection that breaks is made again and goes on after the last
 * cursor, so nothing is lost; one that never came up is an error.
 */
export async function* followEvents(
  session: Session,
  filter: EventFilter,
  signal: AbortSignal,
): AsyncGenerator<Followed> {
  const { WatchService } = await import("../../../contract/millwright/v1/watch_pb.js");
  const client = await session.client(WatchService, { streaming: true });
  const { kinds = [], ids = [], types = [] } = filter;
  let cursor = typeof filter.from === "object" ? filter.from.cursor : "";
  let isReady = false;
  const request = () => ({
    kinds: [...kinds],
    ids: [...ids],
    types: [...types],
    fromCursor: cursor,
    fromNow: cursor === "" && filter.from === "now",
  });
  for await (const { message } of reconnecting(session, () => client.watch(request(), { signal }), signal)) {
    if (message.case === undefined) continue;
    cursor = message.value.cursor;
    if (!isReady) {
      isReady = true;
      yield { type: "ready" };
    }
    if (message.case === "event") yield { type: "event", event: message.value };
  }
}

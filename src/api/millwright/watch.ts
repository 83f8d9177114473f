import type { ServiceImpl } from "@connectrpc/connect";
import type { WatchService } from "../../../contract/millwright/v1/watch_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { type EventSource, watchEvents } from "../../services/system/watch.ts";
import { watchItemOf } from "./event-messages.ts";

export const watch = (deps: ServiceDeps, events: EventSource): ServiceImpl<typeof WatchService> => ({
  async *watch({ kinds, ids, types, fromCursor, fromNow }, { signal }) {
    const query = { kinds, ids, types, fromCursor, fromNow };
    for await (const item of watchEvents(deps, events, query, signal)) yield watchItemOf(item);
  },
});

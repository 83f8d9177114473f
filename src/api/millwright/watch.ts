import type { ServiceImpl } from "@connectrpc/connect";
import type { WatchService } from "../../../contract/millwright/v1/watch_pb.js";
import { reachOf } from "../../kernel/access/scope.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { type EventSource, watchEvents } from "../../services/system/watch.ts";
import { callerKey } from "../transport/interceptors.ts";
import { watchItemOf } from "./event-messages.ts";

export const watch = (deps: ServiceDeps, events: EventSource): ServiceImpl<typeof WatchService> => ({
  async *watch({ kinds, ids, types, fromCursor, fromNow }, { signal, values }) {
    const query = { kinds, ids, types, fromCursor, fromNow, reach: reachOf(values.get(callerKey).scope) };
    for await (const item of watchEvents(deps, events, query, signal)) yield watchItemOf(item);
  },
});

import type { MessageInitShape, JsonObject as WireJsonObject } from "@bufbuild/protobuf";
import type { EventSchema } from "../../../contract/millwright/v1/event_pb.js";
import type { WatchResponseSchema } from "../../../contract/millwright/v1/watch_pb.js";
import { alarmOf, type JournalRow } from "../../services/system/history.ts";
import type { WatchItem } from "../../services/system/watch.ts";
import { timestampOf } from "../convert/fields.ts";

export const eventOf = (row: JournalRow): MessageInitShape<typeof EventSchema> => ({
  cursor: row.cursor,
  at: timestampOf(row.at),
  kind: row.kind,
  id: row.id,
  version: BigInt(row.version),
  type: row.type,
  fromState: row.from ?? "",
  toState: row.to ?? "",
  actor: row.actor,
  reason: row.reason ?? "",
  data: row.data as WireJsonObject,
  address: row.address ?? "",
  alarm: alarmOf(row) ?? "",
});

export const watchItemOf = (item: WatchItem): MessageInitShape<typeof WatchResponseSchema> => ({
  message:
    item.type === "event"
      ? { case: "event", value: eventOf(item.row) }
      : { case: "bookmark", value: { cursor: item.cursor } },
});

import { type DeviceLogEntry, DeviceLogEntrySchema } from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printList } from "../../terminal/printing.ts";
import type { Tone } from "../../terminal/table.ts";
import { clockTime, isoTime } from "../../terminal/times.ts";

const TONES: { readonly [severity: string]: Tone } = { warning: "busy", critical: "bad" };

const columns: readonly Column<DeviceLogEntry>[] = [
  { title: "TIME", cell: ({ at }) => clockTime(at), plain: ({ at }) => isoTime(at) },
  { title: "SEVERITY", cell: ({ severity }) => severity, tone: ({ severity }) => TONES[severity] },
  { title: "ID", cell: ({ id }) => id },
  { title: "MESSAGE", cell: ({ message }) => message },
];

/** What the device itself has noted, the newest last, as one reads a log. */
export async function printDeviceLog(session: Session, entries: readonly DeviceLogEntry[]): Promise<void> {
  const json = (entry: DeviceLogEntry) => jsonOf(DeviceLogEntrySchema, entry);
  await printList(session, { items: entries.toReversed(), columns, json }, "Its log is empty, or not read yet.");
}

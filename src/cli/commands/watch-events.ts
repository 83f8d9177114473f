import type { Event } from "../../../contract/millwright/v1/event_pb.js";
import { EXIT } from "../errors.ts";
import { type EventFilter, followEvents } from "../events.ts";
import { type Column, renderChange, renderHead } from "../output.ts";
import type { Session } from "../session.ts";
import { widthOf } from "../table.ts";
import { eventColumns, eventJson } from "./event-view.ts";
import { kindOf } from "./kind.ts";

export interface WatchOptions {
  readonly from?: string;
  readonly type?: readonly string[];
  readonly limit?: number;
}

/** Events as they happen, one line each. */
export async function watchEvents(
  session: Session,
  kind: string | undefined,
  ids: readonly string[],
  options: WatchOptions,
): Promise<number> {
  const { stdout } = session.terminal;
  const filter = {
    kinds: kind === undefined ? [] : [kindOf(kind)],
    ids,
    types: options.type ?? [],
    from: startOf(options.from),
  };
  let seen = 0;
  let columns = eventColumns;
  stdout.write(await renderHead(eventColumns, session.style()));
  for await (const followed of followEvents(session, filter, session.signal)) {
    if (followed.type !== "event") continue;
    const style = session.style();
    columns = widened(columns, followed.event, style.now);
    stdout.write(await renderChange({ columns, json: eventJson }, followed.event, style));
    seen++;
    if (seen === options.limit) return EXIT.ok;
  }
  return EXIT.interrupted;
}

/** What is to come is not known; columns are as wide as the widest that has been, so that rows soon stand below each other. */
const widened = (columns: readonly Column<Event>[], event: Event, now: Date): readonly Column<Event>[] =>
  columns.map((column, at) =>
    at === columns.length - 1
      ? column
      : { ...column, least: Math.max(column.least ?? 0, widthOf(column.cell(event, now))) },
  );

function startOf(from: string | undefined): EventFilter["from"] {
  if (from === undefined || from === "now") return "now";
  return from === "oldest" ? "oldest" : { cursor: from };
}

import type { Event } from "../../../../contract/millwright/v1/event_pb.js";
import { EXIT } from "../../client/errors.ts";
import { type EventFilter, followEvents } from "../../client/events.ts";
import type { Session } from "../../client/session.ts";
import { type Column, columnsBeside, renderChange, renderHead } from "../../terminal/output.ts";
import { widthOf } from "../../terminal/wrap-words.ts";
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
  const stream = createEventStream(filter.kinds[0], session);
  stdout.write(await stream.head());
  for await (const followed of followEvents(session, filter, session.signal)) {
    if (followed.type !== "event") continue;
    stdout.write(await stream.row(followed.event));
    seen++;
    if (seen === options.limit) return EXIT.ok;
  }
  return EXIT.interrupted;
}

/**
 * What is to come is not known; columns are as wide as the widest that has been, so that rows soon stand below each other. On a terminal
 * the head is said again above wider columns; an event that would leave room for fewer of them is laid out by itself.
 */
function createEventStream(kind: string | undefined, session: Session) {
  let columns = eventColumns(kind);
  return {
    head: () => renderHead(columns, session.style()),
    async row(event: Event): Promise<string> {
      const style = session.style();
      const wider = widened(columns, event, style.now);
      if (columnsBeside(wider, style) < columnsBeside(columns, style)) {
        const isWhole = columnsBeside(columns, style) === columns.length;
        // Beside whole rows it keeps its columns too, as far as they go.
        const own = isWhole ? wider.map(({ minor: _minor, short: _short, ...column }) => column) : wider;
        return renderChange({ columns: own, json: eventJson }, event, style);
      }
      const row = await renderChange({ columns: wider, json: eventJson }, event, style);
      const [before, now] = [await renderHead(columns, style), await renderHead(wider, style)];
      columns = wider;
      // Whoever reads a pipe wants it once.
      return before !== now && session.terminal.stdout.isTTY && style.format === "table" ? now + row : row;
    },
  };
}

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

import { EXIT } from "../errors.ts";
import { type EventFilter, followEvents } from "../events.ts";
import { renderChange, renderHead } from "../output.ts";
import type { Session } from "../session.ts";
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
  stdout.write(await renderHead(eventColumns, session.style()));
  for await (const followed of followEvents(session, filter, session.signal)) {
    if (followed.type !== "event") continue;
    stdout.write(await renderChange({ columns: eventColumns, json: eventJson }, followed.event, session.style()));
    seen++;
    if (seen === options.limit) return EXIT.ok;
  }
  return EXIT.interrupted;
}

function startOf(from: string | undefined): EventFilter["from"] {
  if (from === undefined || from === "now") return "now";
  return from === "oldest" ? "oldest" : { cursor: from };
}

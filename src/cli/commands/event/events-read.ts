import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Event } from "../../../../contract/millwright/v1/event_pb.js";
import { HistoryService } from "../../../../contract/millwright/v1/history_pb.js";
import { CliError, EXIT } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { printList } from "../../terminal/printing.ts";
import { parseDuration } from "../../terminal/times.ts";
import { eventColumns, eventJson } from "./event-view.ts";
import type { HistoryOptions } from "./history-read.ts";
import { kindOf } from "./kind.ts";

export interface EventsOptions extends HistoryOptions {
  readonly kind?: readonly string[];
  readonly actor?: readonly string[];
  readonly since?: string;
  readonly until?: string;
}

const PAGE_SIZE = 1_000;

/** The newest events, the newest last, as one reads a log. */
export async function showEvents(
  session: Session,
  words: readonly string[],
  options: EventsOptions,
): Promise<undefined> {
  const { limit, type = [], kind = [], actor = [], since, until } = options;
  const ago = (text: string | undefined, option: string) =>
    text === undefined
      ? undefined
      : timestampFromDate(new Date(session.terminal.now().getTime() - parseDuration(text, option)));
  const client = await session.client(HistoryService);
  const query = {
    things: words.map(thingFrom),
    kinds: kind.map(kindOf),
    types: [...type],
    actors: [...actor],
    since: ago(since, "--since"),
    until: ago(until, "--until"),
    pageSize: Math.min(limit, PAGE_SIZE),
  };
  const events: Event[] = [];
  let pageToken = "";
  do {
    const page = await client.listEvents({ ...query, pageToken }, { signal: session.signal });
    events.push(...page.events);
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && events.length < limit);
  const items = events.slice(0, limit).reverse();
  await printList(
    session,
    { items, columns: eventColumns(kind.length === 1 ? kindOf(kind[0] ?? "") : undefined), json: eventJson },
    "No such events.",
  );
  if ((pageToken !== "" || events.length > limit) && session.style().format === "table")
    session.terminal.stderr.write(`Older events exist; --limit ${limit * 10} shows more.\n`);
}

function thingFrom(word: string) {
  const [kind = "", ...id] = word.split("/");
  if (kind !== "" && id.join("/") !== "") return { kind: kindOf(kind), id: id.join("/") };
  throw new CliError(EXIT.usage, `${JSON.stringify(word)} is no thing: write its kind and its id, such as machine/m-1`);
}

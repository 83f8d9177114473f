import type { Event } from "../../../../contract/millwright/v1/event_pb.js";
import { HistoryService, type ListHistoryResponse } from "../../../../contract/millwright/v1/history_pb.js";
import { CliError, EXIT } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { printLine, printList } from "../../terminal/printing.ts";
import { clockTime } from "../../terminal/times.ts";
import { resolveNode } from "../fleet/names.ts";
import { eventJson, historyColumns } from "./event-view.ts";
import { kindOf } from "./kind.ts";

export interface HistoryOptions {
  readonly limit: number;
  readonly type?: readonly string[];
}

const PAGE_SIZE = 1_000;

/** The newest entries of a thing's journal, the newest last, as one reads a log. */
export async function showHistory(
  session: Session,
  kindWord: string,
  idOrName: string,
  options: HistoryOptions,
): Promise<undefined> {
  const kind = kindOf(kindWord);
  const id = kind === "fleet_node" ? await resolveNode(session, idOrName) : idOrName;
  const { events, hasMore, removed } = await readNewest(session, kind, id, options);
  if (events.length === 0 && !options.type?.length && removed === "") {
    throw new CliError(EXIT.notFound, `${kind} ${id} has no history: it never existed`);
  }
  await printList(session, { items: events.reverse(), columns: historyColumns, json: eventJson }, "No such events.");
  if (hasMore && session.style().format === "table")
    printLine(session.terminal.stderr, `Older entries exist; --limit ${options.limit * 10} shows more.`);
  if (removed !== "") session.terminal.stderr.write(removed);
}

async function readNewest(
  session: Session,
  kind: string,
  id: string,
  { limit, type = [] }: HistoryOptions,
): Promise<{ events: Event[]; hasMore: boolean; removed: string }> {
  const client = await session.client(HistoryService);
  const events: Event[] = [];
  let removed = "";
  let pageToken = "";
  // The page size stays the same from page to page, so that a token is never used with another query.
  const pageSize = Math.min(limit, PAGE_SIZE);
  do {
    const page = await client.listHistory(
      { kind, id, pageSize, pageToken, types: [...type], newestFirst: true },
      { signal: session.signal },
    );
    events.push(...page.events);
    removed = removedLine(page);
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && events.length < limit);
  return { events: events.slice(0, limit), hasMore: pageToken !== "" || events.length > limit, removed };
}

/** What is missing since retention removed it; empty while the history is whole. */
const removedLine = ({ removedEntries, removedUntil }: ListHistoryResponse): string =>
  removedEntries === 0n
    ? ""
    : `${removedEntries} ${removedEntries === 1n ? "entry was" : "entries were"} removed after the retention time ` +
      `(history.retention); the newest of them was of ${clockTime(removedUntil)}.\n`;

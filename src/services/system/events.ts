import type { Reach } from "../../kernel/access/scope.ts";
import { AppError } from "../../kernel/errors.ts";
import { isCursor, type JournalRow, parseCursor } from "../../store/lifecycle/journal.ts";
import { countEvents, type EventPage, listEvents } from "../../store/lifecycle/journal-pages.ts";
import { countBegun, cursorAtTime } from "../../store/lifecycle/journal-times.ts";
import { entriesWithin } from "../../store/lifecycle/places.ts";
import type { ThingKey } from "../../store/lifecycle/things.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { checkKind } from "../call/known-kinds.ts";
import { checkPageSize, cutPage, type Page, pageTokenOf, parsePageToken } from "../call/paging.ts";

export interface EventsQuery {
  readonly things: readonly ThingKey[];
  readonly kinds: readonly string[];
  readonly types: readonly string[];
  readonly actors: readonly string[];
  readonly since: Date | null;
  readonly until: Date | null;
  readonly fromCursor: string;
  readonly oldestFirst: boolean;
  readonly pageSize: number;
  readonly pageToken: string;
}

/** Only events of things within it are told, and counted. Undefined: all. */
interface Reached {
  readonly reach: Reach | undefined;
}

export interface EventsPage extends Page<JournalRow> {
  /** The moment of the last entry that was looked at; null: there was none. */
  readonly searchedTo: Date | null;
}

const MOST_THINGS = 100;
const MOST_WORDS = 100;
/** Entries have the times at which their transactions began, and no transaction of ours lasts longer. */
const SLACK_MS = 120_000;

const refuse = (field: string, why: string) => new AppError("invalid_argument", `${field}: ${why}`, { field });

/** The journal over all things or several, page by page. */
export async function pageEvents(deps: ServiceDeps, request: EventsQuery & Reached): Promise<EventsPage> {
  const { lists = deps.db } = deps;
  const { pageSize, pageToken, reach, ...query } = request;
  checkQuery(deps, query);
  const size = checkPageSize(pageSize);
  const place = parsePageToken(deps.secrets, pageToken, query, 1, ([cursor = ""]) => isCursor(cursor))?.[0] ?? null;
  const { since, until, oldestFirst, fromCursor } = query;
  const cursorAt = (moment: Date | null, slack: number) =>
    moment === null ? null : cursorAtTime(lists, new Date(moment.getTime() + slack));
  const [first, last] = [await cursorAt(since, -SLACK_MS), await cursorAt(until, SLACK_MS)];
  const [start, to] = oldestFirst ? [first, last] : [last, first];
  const from = place ?? (fromCursor === "" ? start : fromCursor);
  const among = entriesWithin(deps.stores, reach);
  const page = await listEvents(lists, { ...query, from, to, limit: size + 1, among });
  return { ...cutEvents(deps, page, size, query), searchedTo: (page.searchedTo ?? page.rows.at(-1))?.at ?? null };
}

function cutEvents(deps: ServiceDeps, { rows, searchedTo }: EventPage, size: number, query: object): Page<JournalRow> {
  const page = cutPage(deps.secrets, rows, size, query, ({ cursor }) => [cursor]);
  if (page.nextPageToken !== "" || searchedTo === null) return page;
  return { ...page, nextPageToken: pageTokenOf(deps.secrets, query, [searchedTo.cursor]) };
}

function checkQuery(deps: ServiceDeps, query: Omit<EventsQuery, "pageSize" | "pageToken">): void {
  const { things, kinds, types, actors, since, until, fromCursor } = query;
  if (things.length > MOST_THINGS) throw refuse("things", `at most ${MOST_THINGS} in one call, got ${things.length}`);
  for (const { kind, id } of things) {
    checkKind(deps, kind, "things.kind");
    if (id === "") throw refuse("things.id", "is required");
  }
  for (const [field, words] of Object.entries({ kinds, types, actors }))
    if (words.length > MOST_WORDS) throw refuse(field, `at most ${MOST_WORDS} in one call, got ${words.length}`);
  for (const kind of kinds) checkKind(deps, kind, "kinds");
  if (since !== null && until !== null && since >= until) throw refuse("since", "must be before until");
  if (fromCursor !== "") parseCursor(fromCursor, "from_cursor");
}

export async function findEventCursor(deps: ServiceDeps, at: Date | null): Promise<string> {
  if (at === null) throw refuse("at", "is required");
  return cursorAtTime(deps.lists ?? deps.db, at);
}

export interface EventCounts {
  readonly buckets: readonly { readonly since: Date; readonly events: number }[];
  readonly isEstimated: boolean;
}

export interface CountQuery {
  readonly since: Date | null;
  readonly until: Date | null;
  readonly buckets: number;
  readonly kinds: readonly string[];
  readonly types: readonly string[];
}

const MOST_BUCKETS = 120;
const USUAL_BUCKETS = 60;
/** So many entries are counted one by one. */
const MOST_COUNTED = 200_000;

/** How many events there were in equal parts of a time. */
export async function countEventsIn(deps: ServiceDeps, query: CountQuery & Reached): Promise<EventCounts> {
  const { lists = deps.db } = deps;
  const { kinds, types, reach } = query;
  for (const kind of kinds) checkKind(deps, kind, "kinds");
  const buckets = query.buckets === 0 ? USUAL_BUCKETS : query.buckets;
  if (buckets < 1 || buckets > MOST_BUCKETS) throw refuse("buckets", `1 to ${MOST_BUCKETS}, got ${buckets}`);
  if (query.since === null) throw refuse("since", "is required");
  const [since, until] = [query.since, query.until ?? nowOf(deps)];
  if (since >= until) throw refuse("since", "must be before until");
  const part = (until.getTime() - since.getTime()) / buckets;
  const begins = Array.from({ length: buckets }, (_, at) => new Date(since.getTime() + at * part));
  const from = await cursorAtTime(lists, new Date(since.getTime() - SLACK_MS));
  const to = await cursorAtTime(lists, new Date(until.getTime() + SLACK_MS));
  const among = entriesWithin(deps.stores, reach);
  const range = { since, until, seconds: part / 1_000, kinds, types, from, to, most: MOST_COUNTED, among };
  const counted = await countEvents(lists, range);
  if (counted)
    return { buckets: begins.map((begin, at) => ({ since: begin, events: counted.get(at) ?? 0 })), isEstimated: false };
  if (kinds.length > 0 || types.length > 0 || reach)
    throw refuse("since", `more than ${MOST_COUNTED} events are too many to be filtered; ask for a shorter time`);
  const begun = await countBegun(lists, [...begins, until]);
  const events = begins.map((begin, at) => ({
    since: begin,
    events: Number((begun[at + 1] ?? 0n) - (begun[at] ?? 0n)),
  }));
  return {
    buckets: events.map(({ since: at, events: some }) => ({ since: at, events: Math.max(0, some) })),
    isEstimated: true,
  };
}

import type { Queryable } from "../postgres/database.ts";
import type { Within } from "../postgres/listing.ts";
import { JOURNAL_COLUMNS, type JournalRow, ofTypes, parseCursor, SETTLED, type TimeRange } from "./journal.ts";
import type { ThingKey } from "./things.ts";

export interface EventQuery {
  /** Empty: all. */
  readonly things: readonly ThingKey[];
  readonly kinds: readonly string[];
  readonly types: readonly string[];
  readonly actors: readonly string[];
  readonly since: Date | null;
  readonly until: Date | null;
  readonly oldestFirst: boolean;
  /** Entries before it, or after it with the oldest first; null: from the end, or the beginning. */
  readonly from: string | null;
  /** Not beyond this one; null: to the end. */
  readonly to: string | null;
  readonly limit: number;
  /** Only of these things, as a condition on the entry `j`. Absent: of all. */
  readonly among?: Within | undefined;
}

export interface EventPage {
  readonly rows: readonly JournalRow[];
  /** Where to go on, though fewer rows than asked for were found; null: there are no more. */
  readonly searchedTo: { readonly cursor: string; readonly at: Date } | null;
}

/** How many entries are looked at for one page: a filter that few satisfy must not read the whole journal. */
const EXAMINED = 20_000;

/** Events in either order. One more than asked for says that there are more. */
export async function listEvents(db: Queryable, query: EventQuery): Promise<EventPage> {
  if (query.things.length > 0) return { rows: await eventsOfThings(db, query), searchedTo: null };
  const rows = await readExamined(db, query);
  return { rows, searchedTo: rows.length < query.limit ? await findEdge(db, query) : null };
}

type Parameter = (value: unknown) => string;

const orderOf = ({ oldestFirst }: EventQuery): string => {
  const direction = oldestFirst ? "asc" : "desc";
  return `j.epoch ${direction}, j.xid ${direction}, j.seq ${direction}`;
};

function betweenSql({ from, to, oldestFirst }: EventQuery, parameter: Parameter): string[] {
  const key = (cursor: string) => {
    const [epoch, xid, seq] = parseCursor(cursor);
    return `(${parameter(epoch)}::int, ${parameter(xid)}::xid8, ${parameter(seq)}::bigint)`;
  };
  const [beyond, upTo] = oldestFirst ? [">", "<="] : ["<", ">="];
  return [
    SETTLED,
    ...(from === null ? [] : [`(j.epoch, j.xid, j.seq) ${beyond} ${key(from)}`]),
    ...(to === null ? [] : [`(j.epoch, j.xid, j.seq) ${upTo} ${key(to)}`]),
  ];
}

function satisfySql({ kinds, types, actors, since, until, among }: EventQuery, parameter: Parameter): string[] {
  return [
    ...(kinds.length === 0 ? [] : [`j.kind = any(${parameter(kinds)})`]),
    ...(actors.length === 0 ? [] : [`j.actor = any(${parameter(actors)})`]),
    ...(since === null ? [] : [`j.at >= ${parameter(since)}`]),
    ...(until === null ? [] : [`j.at < ${parameter(until)}`]),
    ...(among ? [among(parameter)] : []),
    ...(types.length === 0 ? [] : [ofTypes(Number(parameter(types).slice(1)), types)]),
  ];
}

/** The limit inside keeps the filter out of it: however rare what is looked for is, the journal is read in its own order, and no further. */
async function readExamined(db: Queryable, query: EventQuery): Promise<JournalRow[]> {
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const between = betweenSql(query, parameter).join(" and ");
  const satisfied = satisfySql(query, parameter);
  return db.query<JournalRow>(
    `select ${JOURNAL_COLUMNS} from (select * from journal j where ${between} order by ${orderOf(query)} limit ${EXAMINED}) as j
      ${satisfied.length === 0 ? "" : `where ${satisfied.join(" and ")}`} order by ${orderOf(query)} limit ${Math.floor(query.limit)}`,
    values,
  );
}

/** The last entry that is looked at; null: all of them are. */
async function findEdge(db: Queryable, query: EventQuery) {
  const values: unknown[] = [];
  const where = betweenSql(query, (value) => `$${values.push(value)}`).join(" and ");
  const [edge] = await db.query<{ cursor: string; at: Date }>(
    `select j.epoch || '.' || j.xid::text || '.' || j.seq as cursor, j.at from journal j
      where ${where} order by ${orderOf(query)} offset ${EXAMINED - 1} limit 1`,
    values,
  );
  return edge ?? null;
}

/** The newest of each, merged: every thing has its own place in the index. */
async function eventsOfThings(db: Queryable, query: EventQuery): Promise<JournalRow[]> {
  const { things, limit } = query;
  const values: unknown[] = [things.map(({ kind }) => kind), things.map(({ id }) => id)];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const where = [...betweenSql(query, parameter), ...satisfySql(query, parameter)].join(" and ");
  return db.query<JournalRow>(
    `select ${JOURNAL_COLUMNS} from (select distinct * from unnest($1::text[], $2::text[])) as t(kind, id)
       cross join lateral (select * from journal j where j.kind = t.kind and j.id = t.id and ${where}
                            order by ${orderOf(query)} limit ${Math.floor(limit)}) as j
      order by ${orderOf(query)} limit ${Math.floor(limit)}`,
    values,
  );
}

/** Events by equal parts of a time, the parts without any left out; undefined: there are more than may be counted. */
export async function countEvents(
  db: Queryable,
  query: TimeRange & {
    readonly seconds: number;
    readonly kinds: readonly string[];
    readonly types: readonly string[];
    /** Around the time, so that the index finds it. */
    readonly from: string;
    readonly to: string;
    readonly most: number;
    readonly among?: Within | undefined;
  },
): Promise<ReadonlyMap<number, number> | undefined> {
  const { since, until, seconds, kinds, types, from, to, most, among } = query;
  const values: unknown[] = [since, until, seconds];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const all: EventQuery = {
    things: [],
    kinds,
    types,
    actors: [],
    since: null,
    until: null,
    oldestFirst: true,
    from,
    to,
    limit: 0,
    among,
  };
  const range = betweenSql(all, parameter).join(" and ");
  const [size] = await db.query<{ rows: number }>(
    `select count(*)::int as rows from (select 1 from journal j where ${range} limit ${Math.floor(most) + 1}) as s where $1::timestamptz < $2::timestamptz and $3::float8 > 0`,
    values,
  );
  if ((size?.rows ?? 0) > most) return undefined;
  const satisfied = satisfySql(all, parameter);
  const rows = await db.query<{ bucket: number; events: number }>(
    `select floor(extract(epoch from j.at - $1::timestamptz) / $3::float8)::int as bucket, count(*)::int as events from journal j
      where ${[range, "j.at >= $1", "j.at < $2", ...satisfied].join(" and ")} group by 1`,
    values,
  );
  return new Map(rows.map(({ bucket, events }) => [bucket, events]));
}

import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { toJsonText } from "../postgres/json-text.ts";
import { ALARM_SQL, ALARMS } from "./alarms.ts";
import type { ThingKey } from "./things.ts";

export interface JournalEntry extends ThingKey {
  /** The thing's version after it. */
  readonly version: number;
  readonly type: string;
  readonly from: string | null;
  readonly to: string | null;
  /** Who owns the edge, for transitions. */
  readonly owner: string | null;
  readonly actor: string;
  /** Where the call came from; absent for what no caller did. */
  readonly address?: string | null;
  readonly reason: string | null;
  readonly data: JsonObject;
}

export interface JournalRow extends JournalEntry {
  readonly cursor: string;
  readonly at: Date;
}

/** The caller holds the locks of all things named: see `lockThings`. */
export async function append(tx: Transaction, entries: readonly JournalEntry[]): Promise<void> {
  if (entries.length === 0) return;
  await tx.query({
    hot: true,
    text: `insert into journal (epoch, kind, id, version, type, from_state, to_state, owner, actor, address, reason, data)
     select e.epoch, j.* from journal_epoch e cross join
            jsonb_to_recordset($1) as j(kind text, id text, version bigint, type text, "from" text, "to" text, owner text, actor text,
                                        address text, reason text, data jsonb)`,
    values: [toJsonText(entries)], // as one text: JSON in an array of texts is escaped anew, which costs as much again
  });
  failPoint("journal:appended", entries);
}

const CHANNEL = "millwright";

/** One NOTIFY a transaction: it wakes tailers and idle controllers, which then read for themselves. */
export const announce = (tx: Transaction): void => tx.notifyWhenCommitted(CHANNEL);

/** The same where nothing is to be committed. */
export async function announceNow(db: Queryable): Promise<void> {
  await db.query(`select pg_notify($1, '')`, [CHANNEL]);
}

export interface JournalFilter {
  readonly kinds?: readonly string[];
  readonly ids?: readonly string[];
  readonly types?: readonly string[];
}

export const JOURNAL_COLUMNS = `j.epoch || '.' || j.xid::text || '.' || j.seq as cursor, j.at, j.kind, j.id, j.version, j.type,
  j.from_state as "from", j.to_state as "to", j.owner, j.actor, j.address, j.reason, j.data`;
/** Rows that no older transaction can still precede. As one comparison it ends the index scan: what is held back is not read. */
export const SETTLED = `(j.epoch, j.xid) < ((select epoch from journal_epoch), pg_snapshot_xmin(pg_current_snapshot()))`;
const ORDER = "j.epoch, j.xid, j.seq";

/** The next rows after a cursor, each exactly once, each thing's in the order of its versions. */
export async function readAfter(
  db: Queryable,
  cursor: string,
  limit: number,
  filter: JournalFilter = {},
): Promise<JournalRow[]> {
  const [epoch, xid, seq] = parseCursor(cursor);
  const values: unknown[] = [epoch, xid, seq];
  const also = [["kind", filter.kinds] as const, ["id", filter.ids] as const].flatMap(([column, words]) =>
    words && words.length > 0 ? [`and j.${column} = any($${values.push(words)})`] : [],
  );
  if (filter.types && filter.types.length > 0) also.push(`and ${ofTypes(values.push(filter.types), filter.types)}`);
  const rows = await db.query<JournalRow>(
    `select ${JOURNAL_COLUMNS} from journal j
      where (j.epoch, j.xid, j.seq) > ($1::int, $2::xid8, $3::bigint) and ${SETTLED} ${also.join(" ")}
      order by ${ORDER} limit ${Math.floor(limit)}`,
    values,
  );
  return rows;
}

/** Entries of these types, of which some may be alarms: those are judged only where one is asked for. */
export const ofTypes = (at: number, types: readonly string[]): string =>
  ALARMS.some((alarm) => types.includes(alarm))
    ? `(j.type = any($${at}) or ${ALARM_SQL} = any($${at}))`
    : `j.type = any($${at})`;

/** Alarms of a time, the oldest first. */
export async function listAlarms(db: Queryable, { since, until }: TimeRange, limit: number): Promise<JournalRow[]> {
  return db.query<JournalRow>(
    `select ${JOURNAL_COLUMNS} from journal j where j.at >= $1 and j.at < $2 and ${ALARM_SQL} is not null
      order by j.at, ${ORDER} limit ${Math.floor(limit)}`,
    [since, until],
  );
}

export interface TimeRange {
  readonly since: Date;
  readonly until: Date;
}

/** How often somebody did something, in the words of the journal. */
export interface Doing {
  readonly actor: string;
  readonly kind: string;
  /** The verb of a transition, or the type of the entry. */
  readonly what: string;
  readonly count: number;
  readonly last: Date;
  /** The thing that it was done to last. */
  readonly lastId: string;
}

/** What callers did in a time, those who did the most first. What parts of the server did by themselves is not theirs. */
export async function listDoings(db: Queryable, { since, until }: TimeRange, limit: number): Promise<Doing[]> {
  return db.query<Doing>(
    `select j.actor, j.kind, coalesce(j.data ->> 'trigger', j.type) as what, count(*)::int as count, max(j.at) as last,
            (array_agg(j.id order by j.at desc))[1] as "lastId"
       from journal j
      where j.at >= $1 and j.at < $2 and j.type <> 'conditions_changed' and (j.owner = 'caller' or j.address is not null)
      group by 1, 2, 3 order by count(*) desc, 1, 2, 3 limit ${Math.floor(limit)}`,
    [since, until],
  );
}

/** The cursor of this moment: everything settled is before it, everything else will come after it. */
export const currentCursor = (db: Queryable): Promise<string> => cursorAt(db, "xmin");

/** No entry that anybody could have seen by now has a later cursor. */
export const latestCursor = (db: Queryable): Promise<string> => cursorAt(db, "xmax");

async function cursorAt(db: Queryable, edge: "xmin" | "xmax"): Promise<string> {
  const [row] = await db.query<{ cursor: string }>(
    `select epoch || '.' || pg_snapshot_${edge}(pg_current_snapshot())::text || '.0' as cursor from journal_epoch`,
  );
  if (!row) throw new Error("the journal has no epoch");
  return row.cursor;
}

export interface HistoryPage {
  readonly key: ThingKey;
  readonly limit: number;
  readonly types: readonly string[];
  readonly newestFirst: boolean;
  /** The cursor of the last row of the page before. */
  readonly after: string | null;
}

/** One thing's entries, also of things that are gone. */
export async function listHistory(db: Queryable, page: HistoryPage): Promise<JournalRow[]> {
  const values: unknown[] = [page.key.kind, page.key.id];
  const [direction, compare] = page.newestFirst ? (["desc", "<"] as const) : (["asc", ">"] as const);
  let where = "j.kind = $1 and j.id = $2";
  if (page.after !== null) {
    const at = values.push(...parseCursor(page.after));
    where += ` and (j.epoch, j.xid, j.seq) ${compare} ($${at - 2}::int, $${at - 1}::xid8, $${at}::bigint)`;
  }
  if (page.types.length > 0) where += ` and ${ofTypes(values.push(page.types), page.types)}`;
  const rows = await db.query<JournalRow>(
    `select ${JOURNAL_COLUMNS} from journal j where ${where}
      order by j.epoch ${direction}, j.xid ${direction}, j.seq ${direction} limit ${Math.floor(page.limit)}`,
    values,
  );
  return rows;
}

/** The version that the thing's last entry told; 0 when there is none. */
export async function lastVersion(db: Queryable, { kind, id }: ThingKey): Promise<number> {
  const [row] = await db.query<{ version: number }>(
    `select j.version from journal j where j.kind = $1 and j.id = $2 order by j.epoch desc, j.xid desc, j.seq desc limit 1`,
    [kind, id],
  );
  return row?.version ?? 0;
}

/** How long the oldest open writing transaction has held readers back. */
export async function horizonAge(db: Queryable): Promise<number> {
  const [row] = await db.query<{ seconds: number }>(
    `select coalesce(extract(epoch from clock_timestamp() - min(xact_start)), 0)::float8 as seconds
       from pg_stat_activity where backend_xid is not null and pid <> pg_backend_pid()`,
  );
  return row?.seconds ?? 0;
}

/**
 * A restored database has entries of transactions that are yet to come, or lacks some that watchers have seen. After a new epoch all
 * entries are in the past, and everything new comes after every cursor.
 */
export async function startEpoch(tx: Queryable): Promise<void> {
  await tx.execute("update journal_epoch set epoch = epoch + 1");
}

/** Before every entry. */
export const OLDEST_CURSOR = "0.0.0";

const CURSOR = /^(\d{1,9})\.(\d{1,19})\.(\d{1,18})$/;

export const isCursor = (text: string): boolean => CURSOR.test(text);

/** `field` is where the caller gave it, for the answer when it is none. */
export function parseCursor(cursor: string, field = "cursor"): [epoch: string, xid: string, seq: string] {
  const parts = CURSOR.exec(cursor);
  const [, epoch, xid, seq] = parts ?? [];
  if (epoch === undefined || xid === undefined || seq === undefined) {
    throw new AppError(
      "invalid_argument",
      `${field}: ${JSON.stringify(cursor.slice(0, 80))} is not a cursor that this server gave out`,
      { field },
    );
  }
  return [epoch, xid, seq];
}

/** Which of two cursors comes first: below, above or equal to zero. */
export function compareCursors(a: string, b: string): number {
  if (a === b) return 0;
  const [left, right] = [parseCursor(a), parseCursor(b)];
  for (let part = 0; part < 3; part += 1) {
    const [one, other] = [left[part] as string, right[part] as string];
    if (one.length !== other.length) return one.length - other.length; // whole numbers without leading zeros
    if (one !== other) return one < other ? -1 : 1;
  }
  return 0;
}

/** The cursor up to which entries have been removed: a reader before it has missed some. */
export async function forgottenTo(db: Queryable): Promise<string> {
  const [row] = await db.query<{ cursor: string }>("select forgotten_to as cursor from journal_epoch");
  return row?.cursor ?? OLDEST_CURSOR;
}

import type { Queryable } from "../postgres/database.ts";

/** A place in the journal, as its key has it; `at` is when the entry there was written. */
interface Place {
  readonly epoch: number;
  readonly xid: string;
  readonly seq: string;
  readonly at: Date;
}

const PLACE = "j.epoch, j.xid::text as xid, j.seq::text as seq, j.at";
const KEY = "j.epoch, j.xid, j.seq";

async function firstFrom(db: Queryable, epoch: number, xid: bigint): Promise<Place | undefined> {
  const [place] = await db.query<Place>({
    name: "journal.firstFrom",
    text: `select ${PLACE} from journal j where (${KEY}) >= ($1::int, $2::text::xid8, 0) order by ${KEY} limit 1`,
    values: [epoch, String(xid)],
  });
  return place;
}

async function lastBefore(db: Queryable, epoch: number): Promise<Place | undefined> {
  const [place] = await db.query<Place>(
    `select ${PLACE} from journal j where (${KEY}) < ($1::int, '0'::xid8, 0)
      order by j.epoch desc, j.xid desc, j.seq desc limit 1`,
    [epoch],
  );
  return place;
}

const END = (2 ** 31 - 1) | 0;

/**
 * The place at a moment: entries of before stand before it, as far as transactions were written in the order in which they began. Found
 * by halving, since the journal is in the order of its transactions: a few dozen reads of one entry each, however long it is.
 */
export async function cursorAtTime(db: Queryable, moment: Date): Promise<string> {
  return (await placeAtTime(db, moment)).cursor;
}

interface PlaceAtTime {
  readonly cursor: string;
  /** Of the first entry there; undefined at the end. */
  readonly seq: string | undefined;
}

async function placeAtTime(db: Queryable, moment: Date): Promise<PlaceAtTime> {
  const last = await lastBefore(db, END);
  if (last === undefined) return { cursor: "0.0.0", seq: undefined };
  if (last.at < moment) return { cursor: `${last.epoch}.${BigInt(last.xid) + 1n}.0`, seq: undefined };
  // The epoch in which the moment is, if any: the latest that began before it.
  let end = last;
  let begin = await firstFrom(db, last.epoch, 0n);
  while (begin !== undefined && begin.at >= moment) {
    const before = await lastBefore(db, begin.epoch);
    if (before === undefined || before.at < moment) return { cursor: `${begin.epoch}.${begin.xid}.0`, seq: begin.seq };
    end = before;
    begin = await firstFrom(db, before.epoch, 0n);
  }
  return halve(db, moment, { epoch: end.epoch, low: BigInt(begin?.xid ?? 0), high: BigInt(end.xid), seq: end.seq });
}

/** The entry at `low` is before the moment, and the first at `high` is not. */
async function halve(
  db: Queryable,
  moment: Date,
  range: { readonly epoch: number; readonly low: bigint; readonly high: bigint; readonly seq: string },
): Promise<PlaceAtTime> {
  const { epoch } = range;
  let { low, high, seq } = range;
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    const place = await firstFrom(db, epoch, middle);
    if (place === undefined || place.epoch !== epoch || place.at >= moment) {
      high = middle;
      if (place?.epoch === epoch) seq = place.seq;
    } else low = BigInt(place.xid);
  }
  return { cursor: `${epoch}.${high}.0`, seq };
}

/** How many entries were begun by each of these moments, from an unknown number on: each entry has the next number of a sequence. */
export async function countBegun(db: Queryable, moments: readonly Date[]): Promise<bigint[]> {
  const [newest] = await db.query<{ seq: string }>(
    "select j.seq::text as seq from journal j order by j.epoch desc, j.xid desc, j.seq desc limit 1",
  );
  const end = newest === undefined ? 0n : BigInt(newest.seq) + 1n;
  const counts: bigint[] = [];
  for (const moment of moments) {
    const { seq } = await placeAtTime(db, moment);
    counts.push(seq === undefined ? end : BigInt(seq));
  }
  return counts;
}

import type { Queryable } from "../../postgres/database.ts";
import { OLDEST_CURSOR, parseCursor } from "../journal.ts";
import { LEAF, type Seal } from "./journal-seals.ts";
import { isCode, isRemoved, leavesOf, NO_SEAL, removalCode, type SealBody, sealCode } from "./seal-chain.ts";

export type JournalProblemKind =
  | "entry_changed"
  | "entry_deleted"
  | "entry_inserted"
  | "seal_changed"
  | "seal_missing"
  | "head_missing";

export interface SealedEntry {
  readonly cursor: string;
  readonly kind: string;
  readonly id: string;
  readonly version: number;
}

/** The first thing that is not as it was sealed. */
export interface JournalProblem {
  readonly kind: JournalProblemKind;
  /** The seal where it shows. */
  readonly seal: number;
  readonly sealedAt: Date | null;
  /** The entry, or the last good one before the place where one is missing; null: there is none. */
  readonly entry: SealedEntry | null;
}

interface SealRow extends SealBody {
  readonly mac: Buffer;
  readonly removed: Buffer | null;
  readonly removedMac: Buffer | null;
  readonly found: readonly (readonly [leaf: string, cursor: string, kind: string, id: string, version: number])[];
}

/** A call verifies about so many entries, and at most so many seals. */
const MOST_ENTRIES = 10_000;
const MOST_SEALS = 500;

/**
 * One statement, so that retention and sealers change nothing in between. Of a seal's place no more entries are read than tell that there
 * is one too many.
 */
const READ = `
with batch as materialized (
  select * from (select s.*, sum(s.entries) over (order by s.number) - s.entries as before
                   from (select * from journal_seals where number > $1 order by number limit ${MOST_SEALS}) as s) as s
   where before < ${MOST_ENTRIES}),
placed as (
  select b.*, lag(to_epoch, 1, $2::int) over o as from_epoch, lag(to_xid, 1, $3::xid8) over o as from_xid,
         lag(to_seq, 1, $4::bigint) over o as from_seq
    from batch b window o as (order by number))
select s.number, s.to_epoch || '.' || s.to_xid::text || '.' || s.to_seq as "to", s.entries, s.leaves, s.sealed_at as "sealedAt",
       s.mac, s.removed, s.removed_mac as "removedMac",
       (select coalesce(jsonb_agg(jsonb_build_array(encode(f.leaf, 'hex'), f.cursor, f.kind, f.id, f.version)
                                  order by f.epoch, f.xid, f.seq), '[]')
          from (select j.epoch, j.xid, j.seq, ${LEAF} as leaf, j.epoch || '.' || j.xid::text || '.' || j.seq as cursor,
                       j.kind, j.id, j.version
                  from journal j
                 where (j.epoch, j.xid, j.seq) > (s.from_epoch, s.from_xid, s.from_seq)
                   and (j.epoch, j.xid, j.seq) <= (s.to_epoch, s.to_xid, s.to_seq)
                 order by j.epoch, j.xid, j.seq limit s.entries + 1) as f) as found
  from placed s order by s.number`;

export interface Verified {
  readonly seals: number;
  readonly entries: number;
  /** Entries that retention has removed; only their hashes are left. */
  readonly removed: number;
  /** The last seal that was good. */
  readonly last: Seal | undefined;
  readonly isEnd: boolean;
  readonly problem: JournalProblem | undefined;
}

/** Verifies the seals after one that is known to be good. */
export async function verifyAfter(db: Queryable, key: Buffer, after: Seal | undefined): Promise<Verified> {
  const rows = await db.query<SealRow>({
    text: READ,
    values: [after?.number ?? 0, ...parseCursor(after?.to ?? OLDEST_CURSOR)],
  });
  const sum = { seals: 0, entries: 0, removed: 0 };
  let last: Verified["last"] = after;
  for (const row of rows) {
    const problem = judgeSeal(key, last, row);
    if (problem) return { ...sum, last, isEnd: true, problem };
    last = row;
    sum.seals += 1;
    sum.entries += row.entries;
    sum.removed += row.entries - row.found.length;
  }
  return { ...sum, last, isEnd: rows.length === 0, problem: undefined };
}

function judgeSeal(key: Buffer, before: Verified["last"], row: SealRow): JournalProblem | undefined {
  const { number, sealedAt, leaves, removed, removedMac } = row;
  const due = (before?.number ?? 0) + 1;
  if (number !== due) return { kind: "seal_missing", seal: due, sealedAt: null, entry: null };
  const isGood =
    isCode(row.mac, sealCode(key, before?.mac ?? NO_SEAL, row)) &&
    (removed === null || (removedMac !== null && isCode(removedMac, removalCode(key, number, removed))));
  if (!isGood) return { kind: "seal_changed", seal: number, sealedAt, entry: null };
  const expected = leavesOf(leaves).filter((_, at) => !isRemoved(removed, at));
  const difference = compareEntries(expected, row.found);
  return difference && { ...difference, seal: number, sealedAt };
}

/** Both are in the order of the journal, so that the first difference says what was done. */
function compareEntries(
  expected: readonly string[],
  found: SealRow["found"],
): Pick<JournalProblem, "kind" | "entry"> | undefined {
  const length = Math.max(expected.length, found.length);
  const at = Array.from({ length }, (_, place) => place).find((place) => expected[place] !== found[place]?.[0]);
  if (at === undefined) return undefined;
  const [leaf, entry] = [expected[at], found[at]];
  if (leaf === undefined) return { kind: "entry_inserted", entry: entryOf(entry) };
  if (entry === undefined || expected.includes(entry[0], at))
    return { kind: "entry_deleted", entry: entryOf(found[at - 1]) };
  if (found.some(([other], place) => place > at && other === leaf))
    return { kind: "entry_inserted", entry: entryOf(entry) };
  return { kind: "entry_changed", entry: entryOf(entry) };
}

const entryOf = (found: SealRow["found"][number] | undefined): SealedEntry | null =>
  found === undefined ? null : { cursor: found[1], kind: found[2], id: found[3], version: found[4] };

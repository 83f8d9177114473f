import type { Duration } from "../../kernel/time/duration.ts";
import { ACTIVE_RUN_PHASES } from "../../runs/model/run.ts";
import type { Database, Queryable } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { parseCursor } from "./journal.ts";
import { LEAF, type SealKey } from "./seals/journal-seals.ts";
import { type RemovedEntry, signRemovals } from "./seals/removed-entries.ts";
import type { ThingKey } from "./things.ts";

/** What retention has removed of one thing. */
export interface Removal {
  readonly entries: number;
  /** When the newest of them was written. */
  readonly until: Date;
}

/** What retention removed before now; undefined while the thing's history is whole. */
export async function findRemoval(db: Queryable, { kind, id }: ThingKey): Promise<Removal | undefined> {
  const [row] = await db.query<Removal>("select entries, until from journal_removals where kind = $1 and id = $2", [
    kind,
    id,
  ]);
  return row;
}

export interface Removed {
  /** Entries that were old enough; as many as were asked for when there may be more. */
  readonly examined: number;
  readonly removed: number;
}

/**
 * Examines the next entries that are past their retention, and removes them. Three kinds of entries outlive it: the last entry of
 * a thing (its version goes on from there), its last change of state, and everything of a run that goes on.
 *
 * Each entry is examined once, so that a pass with nothing to do costs nothing, however many entries are kept. What was kept then
 * is removed together with the entry that took its place, once that one is old too. What no seal covers yet is not examined.
 */
export async function removeOldEntries(
  db: Database,
  { retention, most, sealKey }: { readonly retention: Duration; readonly most: number; readonly sealKey: SealKey },
): Promise<Removed> {
  const key = await sealKey();
  const done = await db.transaction(async (tx) => {
    // Another replica that is at it already goes on; two would examine the same entries.
    const [epoch] = await tx.query<{ cursor: string }>(
      "select swept_to as cursor from journal_epoch for update skip locked",
    );
    if (!epoch) return undefined;
    const place = parseCursor(epoch.cursor);
    const [row] = await tx.query<Removed & { readonly gone: readonly RemovedEntry[] }>(REMOVE, [
      ...place,
      retention,
      Math.floor(most),
      ACTIVE_RUN_PHASES,
    ]);
    if (row) await signRemovals(tx, key, row.gone);
    return row;
  });
  if (done && done.removed > 0) failPoint("journal:forgotten");
  return { examined: done?.examined ?? 0, removed: done?.removed ?? 0 };
}

const LATEST = "order by j.epoch desc, j.xid desc, j.seq desc limit 1";
const cursorOf = (row: string) => `${row}.epoch || '.' || ${row}.xid::text || '.' || ${row}.seq`;

const REMOVE = `
with next as materialized (
       select epoch, xid, seq, kind, id, bool_and(at < now() - $4 * interval '1 ms') over (order by epoch, xid, seq) as is_old
         from (select * from journal where (epoch, xid, seq) > ($1::int, $2::xid8, $3::bigint)
                  and (epoch, xid, seq) <= (select to_epoch, to_xid, to_seq from journal_seals order by number desc limit 1)
                order by epoch, xid, seq limit $5) as n),
     examined as materialized (select * from next where is_old),
     last as (select epoch, xid, seq from examined order by epoch desc, xid desc, seq desc limit 1),
     things as (select distinct kind, id from examined e
                 where e.kind <> 'run' or not exists (select 1 from runs r where r.id = e.id and r.state = any($6))),
     kept as materialized (
       select t.kind, t.id, entry.seq as entry, state.seq as state
         from things t
              cross join lateral (select j.seq from journal j where j.kind = t.kind and j.id = t.id ${LATEST}) as entry
              left join lateral (select j.seq from journal j where j.kind = t.kind and j.id = t.id
                                    and j.type in ('created', 'transition') ${LATEST}) as state on true),
     gone as (
       delete from journal j using kept k, last l
        where j.kind = k.kind and j.id = k.id and (j.epoch, j.xid, j.seq) <= (l.epoch, l.xid, l.seq)
          and j.at < now() - $4 * interval '1 ms' and j.seq <> k.entry and j.seq is distinct from k.state
       returning j.epoch, j.xid, j.seq, j.kind, j.id, j.at, ${LEAF} as leaf),
     recorded as (
       insert into journal_removals as r (kind, id, entries, until)
       select kind, id, count(*), max(at) from gone group by kind, id
       on conflict (kind, id) do update
         set entries = r.entries + excluded.entries, until = greatest(r.until, excluded.until)),
     newest as (select epoch, xid, seq from gone order by epoch desc, xid desc, seq desc limit 1),
     noted as (
       update journal_epoch e
          set swept_to = ${cursorOf("l")},
              forgotten_to = case when (n.epoch, n.xid, n.seq) >
                                       (split_part(e.forgotten_to, '.', 1)::int, split_part(e.forgotten_to, '.', 2)::xid8,
                                        split_part(e.forgotten_to, '.', 3)::bigint)
                                  then ${cursorOf("n")} else e.forgotten_to end
         from last l left join newest n on true)
select (select count(*) from examined) as examined, (select count(*) from gone) as removed,
       (select coalesce(jsonb_agg(jsonb_build_array(s.number, encode(g.leaf, 'hex'))), '[]')
          from gone g cross join lateral (
               select number from journal_seals s where (s.to_epoch, s.to_xid, s.to_seq) >= (g.epoch, g.xid, g.seq)
                order by s.to_epoch, s.to_xid, s.to_seq limit 1) as s) as gone`;

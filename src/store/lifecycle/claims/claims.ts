import type { Queryable, Transaction } from "../../postgres/database.ts";
import { failPoint } from "../../postgres/fail-points.ts";
import { toJsonText } from "../../postgres/json-text.ts";
import { nameOf, type ThingKey } from "../things.ts";
import * as work from "../work.ts";
import { decideWishes, findChanged, type Grant, type NewClaim, type Wait } from "./decision.ts";
import { type ClaimWish, nextInLine, type QueuedClaim, queuesOf } from "./queue.ts";
import { type ClaimRow, COLUMNS, listFor, parseClaim } from "./rows.ts";

export type { Wait } from "./decision.ts";
export type { Claim, ClaimWish, QueuedClaim } from "./queue.ts";
export { list, listOfClaimants } from "./rows.ts";

/**
 * Asks for sets of claims; the caller holds the locks of the claimants and of all things, also of those that they waited for.
 * Each set is granted whole or waits whole. One that waits has one ticket, which is its place in every queue, and its claimant is
 * woken when its turn may have come. Asking again for the same set keeps the ticket; a set that changed takes a new one.
 *
 * Returns, for each set that must wait, everybody whom it waits for.
 */
export async function acquire(tx: Transaction, wishes: readonly ClaimWish[]): Promise<Map<ClaimWish, Wait>> {
  if (wishes.length === 0) return new Map();
  let rows = await listFor(tx, wishes);
  const changed = findChanged(wishes, rows);
  if (changed.length > 0) {
    await work.wake(tx, await releaseAll(tx, changed));
    rows = await listFor(tx, wishes);
  }
  const { waits, toGrant, toInsert } = decideWishes(wishes, rows);
  await insert(tx, toInsert);
  await grant(tx, toGrant);
  return waits;
}

/** Whom each wish would have to wait for; nothing is written. Wishes that could be granted are left out. */
export async function findInTheWay(
  db: Queryable,
  wishes: readonly ClaimWish[],
): Promise<Map<ClaimWish, readonly QueuedClaim[]>> {
  if (wishes.length === 0) return new Map();
  const rows = await listFor(db, wishes);
  const waits = wishes.map((wish) => [wish, decideWishes([wish], rows).waits.get(wish)] as const);
  return new Map(waits.flatMap(([wish, wait]) => (wait ? [[wish, wait.inTheWay]] : [])));
}

/** A set of several has one ticket for all of them; the ticket of a set of one is its row's own number. */
async function insert(tx: Transaction, claims: readonly NewClaim[]): Promise<void> {
  if (claims.length === 0) return;
  const rows = claims.map(({ wish, thing, set, setSize, standing, behalf }) => ({
    thing_kind: thing.kind,
    thing_id: thing.id,
    holder_kind: wish.claimant.kind,
    holder_id: wish.claimant.id,
    behalf_kind: behalf?.kind ?? null,
    behalf_id: behalf?.id ?? null,
    reason: wish.reason,
    standing,
    set,
    set_size: setSize,
    bars_for: wish.barsFor ?? null,
    unused: (wish.unused ?? []).map(nameOf),
  }));
  await tx.query({
    hot: true,
    text: `with tickets as materialized (
       select set, nextval(pg_get_serial_sequence('claims', 'seq')) as ticket from unnest($2::int[]) as several(set))
     insert into claims (thing_kind, thing_id, holder_kind, holder_id, behalf_kind, behalf_id, reason, granted_at, joined_at,
                         ticket, set_size, bars_until, unused)
     select i.thing_kind, i.thing_id, i.holder_kind, i.holder_id, i.behalf_kind, i.behalf_id, i.reason,
            case i.standing when 'granted' then now() end, case i.standing when 'under' then now() end,
            t.ticket, i.set_size, now() + i.bars_for * interval '1 ms', i.unused
       from jsonb_to_recordset($1) as i(thing_kind text, thing_id text, holder_kind text, holder_id text, behalf_kind text,
              behalf_id text, reason text, standing text, set int, set_size int, bars_for float8, unused text[])
            left join tickets t using (set)
      order by i.set`,
    values: [toJsonText(rows), [...new Set(rows.filter(({ set_size }) => set_size > 1).map(({ set }) => set))]],
  });
  failPoint(
    "claims:wished",
    claims.map(({ thing }) => thing),
  );
}

/** Claims that waited, and now hold their thing or work on it under another. */
async function grant(tx: Transaction, grants: readonly Grant[]): Promise<void> {
  if (grants.length === 0) return;
  const things = await tx.query<ThingKey>({
    hot: true,
    text: `update claims c set granted_at = case i.standing when 'granted' then coalesce(c.joined_at, now()) end,
                               joined_at = case i.standing when 'under' then now() end,
                               behalf_kind = i.behalf_kind, behalf_id = i.behalf_id
       from jsonb_to_recordset($1) as i(seq bigint, standing text, behalf_kind text, behalf_id text)
      where c.seq = i.seq returning c.thing_kind as kind, c.thing_id as id`,
    values: [
      toJsonText(
        grants.map(({ seq, standing, behalf }) => ({
          seq,
          standing,
          behalf_kind: behalf?.kind ?? null,
          behalf_id: behalf?.id ?? null,
        })),
      ),
    ],
  });
  failPoint("claims:granted", things);
}

/**
 * Ends all claims that the claimants took or wait for; the caller holds the locks of the things. What others have on the same behalf
 * stays. Returns whose turn it may now be, to be woken.
 */
export async function releaseAll(tx: Transaction, claimants: readonly ThingKey[]): Promise<ThingKey[]> {
  if (claimants.length === 0) return [];
  const left = await tx.query<ClaimRow>({
    hot: true,
    text: `with ended as (
       delete from claims c using unnest($1::text[], $2::text[]) as h(kind, id)
        where c.holder_kind = h.kind and c.holder_id = h.id
       returning c.seq, c.thing_kind, c.thing_id)
     select ${COLUMNS} from claims c
      where (c.thing_kind, c.thing_id) in (select thing_kind, thing_id from ended)
        and c.seq not in (select seq from ended)`,
    values: [claimants.map((claimant) => claimant.kind), claimants.map((claimant) => claimant.id)],
  });
  failPoint("claims:released", claimants);
  const turns = [...queuesOf(left.map(parseClaim)).values()].map(nextInLine);
  await grant(
    tx,
    turns.flatMap(({ granted }) =>
      granted
        ? [{ seq: granted.seq, standing: "granted", behalf: isOwn(granted) ? null : granted.holder } as const]
        : [],
    ),
  );
  const woken = turns.flatMap((turn) => turn.woken);
  return [...new Map(woken.map((claimant) => [nameOf(claimant), claimant])).values()];
}

const isOwn = ({ claimant, holder }: QueuedClaim): boolean => nameOf(claimant) === nameOf(holder);

/**
 * Ends all claims on things that are gone, granted or waiting; returns who took or awaited them, to be woken: each then finds
 * the thing gone, and says so, instead of waiting for it for ever.
 */
export async function endOn(tx: Transaction, things: readonly ThingKey[]): Promise<ThingKey[]> {
  if (things.length === 0) return [];
  const claimants = await tx.query<ThingKey>(
    `delete from claims c using unnest($1::text[], $2::text[]) as t(kind, id)
      where c.thing_kind = t.kind and c.thing_id = t.id
     returning c.holder_kind as kind, c.holder_id as id`,
    [things.map((thing) => thing.kind), things.map((thing) => thing.id)],
  );
  const gone = new Set(things.map(nameOf));
  return claimants.filter((claimant) => !gone.has(nameOf(claimant)));
}

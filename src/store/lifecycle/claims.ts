import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { nameOf, type ThingKey } from "./things.ts";

/** The right to work on a thing. One is granted; the others wait in the order in which they came. */
export interface Claim {
  readonly thing: ThingKey;
  readonly holder: ThingKey;
  readonly reason: string;
  readonly requestedAt: Date;
  readonly grantedAt: Date | null;
}

export interface ClaimWish {
  readonly thing: ThingKey;
  readonly holder: ThingKey;
  readonly reason: string;
}

/**
 * Asks for claims; the caller holds the locks of the things. A wish that cannot be granted stays in the queue, and its
 * holder is woken when its turn comes. Asking again is harmless.
 *
 * Returns, for each wish that must wait, the claim that it waits for.
 */
export async function acquire(tx: Transaction, wishes: readonly ClaimWish[]): Promise<Map<ClaimWish, Claim>> {
  const waiting = new Map<ClaimWish, Claim>();
  if (wishes.length === 0) return waiting;
  await tx.query({
    hot: true,
    text: `insert into claims (thing_kind, thing_id, holder_kind, holder_id, reason)
     select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
     on conflict do nothing`,
    values: [
      wishes.map((wish) => wish.thing.kind),
      wishes.map((wish) => wish.thing.id),
      wishes.map((wish) => wish.holder.kind),
      wishes.map((wish) => wish.holder.id),
      wishes.map((wish) => wish.reason),
    ],
  });
  failPoint(
    "claims:wished",
    wishes.map(({ thing }) => thing),
  );
  const things = wishes.map((wish) => wish.thing);
  await grantFirst(tx, things);
  const first = new Map(
    (await list(tx, things)).filter((claim) => claim.grantedAt).map((claim) => [nameOf(claim.thing), claim]),
  );
  for (const wish of wishes) {
    const holder = first.get(nameOf(wish.thing));
    if (holder && nameOf(holder.holder) !== nameOf(wish.holder)) waiting.set(wish, holder);
  }
  return waiting;
}

/** Ends all claims of the holders, granted or waiting; returns whose turn it now is, to be woken. */
export async function releaseAll(tx: Transaction, holders: readonly ThingKey[]): Promise<ThingKey[]> {
  if (holders.length === 0) return [];
  const freed = await tx.query<{ kind: string; id: string }>({
    hot: true,
    text: `delete from claims c using unnest($1::text[], $2::text[]) as h(kind, id)
      where c.holder_kind = h.kind and c.holder_id = h.id
     returning c.thing_kind as kind, c.thing_id as id`,
    values: [holders.map((holder) => holder.kind), holders.map((holder) => holder.id)],
  });
  failPoint("claims:released", holders);
  return grantFirst(tx, freed);
}

/**
 * Ends all claims on things that are gone, granted or waiting; returns who held or awaited them, to be woken: each then finds
 * the thing gone, and says so, instead of waiting for it for ever.
 */
export async function endOn(tx: Transaction, things: readonly ThingKey[]): Promise<ThingKey[]> {
  if (things.length === 0) return [];
  const holders = await tx.query<ThingKey>(
    `delete from claims c using unnest($1::text[], $2::text[]) as t(kind, id)
      where c.thing_kind = t.kind and c.thing_id = t.id
     returning c.holder_kind as kind, c.holder_id as id`,
    [things.map((thing) => thing.kind), things.map((thing) => thing.id)],
  );
  const gone = new Set(things.map(nameOf));
  return holders.filter((holder) => !gone.has(nameOf(holder)));
}

/** Every claim on the things, the granted one first, then in the order of the queue. */
export async function list(db: Queryable, things: readonly ThingKey[]): Promise<Claim[]> {
  if (things.length === 0) return [];
  const rows = await db.query<ClaimRow>({
    hot: true,
    text: `select c.thing_kind, c.thing_id, c.holder_kind, c.holder_id, c.reason, c.requested_at, c.granted_at from claims c
             join unnest($1::text[], $2::text[]) as t(kind, id) on c.thing_kind = t.kind and c.thing_id = t.id
            order by c.granted_at nulls last, c.seq`,
    values: [things.map((thing) => thing.kind), things.map((thing) => thing.id)],
  });
  return rows.map(parseClaim);
}

/** Every claim of the holders, granted or waiting. */
export async function listOfHolders(db: Queryable, holders: readonly ThingKey[]): Promise<Claim[]> {
  if (holders.length === 0) return [];
  const rows = await db.query<ClaimRow>(
    `select c.* from claims c
       join unnest($1::text[], $2::text[]) as h(kind, id) on c.holder_kind = h.kind and c.holder_id = h.id
      order by c.seq`,
    [holders.map((holder) => holder.kind), holders.map((holder) => holder.id)],
  );
  return rows.map(parseClaim);
}

const parseClaim = (row: ClaimRow): Claim => ({
  thing: { kind: row.thing_kind, id: row.thing_id },
  holder: { kind: row.holder_kind, id: row.holder_id },
  reason: row.reason,
  requestedAt: row.requested_at,
  grantedAt: row.granted_at,
});

interface ClaimRow {
  thing_kind: string;
  thing_id: string;
  holder_kind: string;
  holder_id: string;
  reason: string;
  requested_at: Date;
  granted_at: Date | null;
}

/** Grants each thing without a holder to the first in its queue. */
async function grantFirst(tx: Transaction, things: readonly ThingKey[]): Promise<ThingKey[]> {
  if (things.length === 0) return [];
  const rows = await tx.query<ThingKey>({
    hot: true,
    text: `update claims c set granted_at = now()
       from (select distinct on (q.thing_kind, q.thing_id) q.seq, q.granted_at
               from claims q join unnest($1::text[], $2::text[]) as t(kind, id) on q.thing_kind = t.kind and q.thing_id = t.id
              order by q.thing_kind, q.thing_id, q.granted_at nulls last, q.seq) as first
      where c.seq = first.seq and first.granted_at is null
     returning c.holder_kind as kind, c.holder_id as id`,
    values: [things.map((thing) => thing.kind), things.map((thing) => thing.id)],
  });
  return rows;
}

import type { Queryable } from "../../postgres/database.ts";
import type { ThingKey } from "../things.ts";
import type { ClaimWish, QueuedClaim } from "./queue.ts";

/** Every claim on the things, the granted one first, then in the order of the queue. Who works under the granted one is left out. */
export async function list(db: Queryable, things: readonly ThingKey[]): Promise<QueuedClaim[]> {
  if (things.length === 0) return [];
  const rows = await db.query<ClaimRow>({
    hot: true,
    text: `select ${COLUMNS} from claims c
             join unnest($1::text[], $2::text[]) as t(kind, id) on c.thing_kind = t.kind and c.thing_id = t.id
            where c.joined_at is null
            order by c.granted_at nulls last, coalesce(c.ticket, c.seq), c.seq`,
    values: [things.map((thing) => thing.kind), things.map((thing) => thing.id)],
  });
  return rows.map(parseClaim);
}

/** Every claim that the claimants took or wait for. */
export async function listOfClaimants(db: Queryable, claimants: readonly ThingKey[]): Promise<QueuedClaim[]> {
  if (claimants.length === 0) return [];
  const rows = await db.query<ClaimRow>(
    `select ${COLUMNS} from claims c
       join unnest($1::text[], $2::text[]) as h(kind, id) on c.holder_kind = h.kind and c.holder_id = h.id
      order by c.seq`,
    [claimants.map((claimant) => claimant.kind), claimants.map((claimant) => claimant.id)],
  );
  return rows.map(parseClaim);
}

/** The queues of all things that are wished for, and whatever else the claimants have. */
export async function listFor(db: Queryable, wishes: readonly ClaimWish[]): Promise<QueuedClaim[]> {
  const [things, claimants] = [wishes.flatMap(({ targets }) => targets), wishes.map(({ claimant }) => claimant)];
  const rows = await db.query<ClaimRow>({
    hot: true,
    text: `select ${COLUMNS} from claims c
             join unnest($1::text[], $2::text[]) as t(kind, id) on c.thing_kind = t.kind and c.thing_id = t.id
           union
           select ${COLUMNS} from claims c
             join unnest($3::text[], $4::text[]) as h(kind, id) on c.holder_kind = h.kind and c.holder_id = h.id`,
    values: [
      things.map((thing) => thing.kind),
      things.map((thing) => thing.id),
      claimants.map((claimant) => claimant.kind),
      claimants.map((claimant) => claimant.id),
    ],
  });
  return rows.map(parseClaim);
}

/** Each value has one name here, so that statements can be known by their text. */
export const COLUMNS = `c.seq, c.thing_kind, c.thing_id, c.holder_kind, c.holder_id, c.behalf_kind, c.behalf_id, c.reason, c.requested_at,
  c.granted_at, c.joined_at, coalesce(c.ticket, c.seq) as ticket, c.set_size,
  (extract(epoch from c.bars_until - c.requested_at) * 1000)::float8 as bars_for,
  (extract(epoch from coalesce(c.bars_until, c.requested_at + interval '30 minutes') - now()) * 1000)::float8 as bars_left`;

export interface ClaimRow {
  seq: number;
  thing_kind: string;
  thing_id: string;
  holder_kind: string;
  holder_id: string;
  behalf_kind: string | null;
  behalf_id: string | null;
  reason: string;
  requested_at: Date;
  granted_at: Date | null;
  joined_at: Date | null;
  ticket: number;
  set_size: number;
  bars_for: number | null;
  bars_left: number;
}

export function parseClaim(row: ClaimRow): QueuedClaim {
  const claimant = { kind: row.holder_kind, id: row.holder_id };
  return {
    seq: row.seq,
    thing: { kind: row.thing_kind, id: row.thing_id },
    claimant,
    holder: row.behalf_kind === null ? claimant : { kind: row.behalf_kind, id: row.behalf_id ?? "" },
    reason: row.reason,
    requestedAt: row.requested_at,
    grantedAt: row.granted_at,
    standing: row.granted_at ? "granted" : row.joined_at ? "under" : "waiting",
    ticket: row.ticket,
    setSize: row.set_size,
    barsFor: row.bars_for,
    barsLeft: row.bars_left,
  };
}

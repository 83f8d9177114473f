import type { Queryable } from "../postgres/database.ts";
import type { ThingStore } from "./things.ts";

export interface StateCount {
  readonly state: string;
  readonly things: number;
  /** Of these, longer here than the state's SLA. */
  readonly aboveSla: number;
}

/** Every state of the lifecycle, also those without things: a series that comes and goes cannot be alerted on. */
export async function countStates(
  db: Queryable,
  { lifecycle, table, slaCounts = "true" }: ThingStore,
): Promise<StateCount[]> {
  const working = Object.entries(lifecycle.states).flatMap(([state, { sla }]) =>
    sla === undefined ? [] : [{ state, sla }],
  );
  const [counts, late] = await Promise.all([
    db.query<{ state: string; count: number }>(`select state, count(*) from ${table} group by state`),
    // Apart, and by state first, so that the index finds the few that are at work among the many that rest.
    db.query<{ state: string; count: number }>(
      `select t.state, count(*) from unnest($1::text[], $2::float8[]) as s(state, sla)
         join ${table} t on t.state = s.state where t.state_since < now() - s.sla * interval '1 ms' and ${slaCounts} group by t.state`,
      [working.map(({ state }) => state), working.map(({ sla }) => sla)],
    ),
  ]);
  const countIn = (rows: readonly { state: string; count: number }[], state: string): number =>
    rows.find((row) => row.state === state)?.count ?? 0;
  return Object.keys(lifecycle.states).map((state) => ({
    state,
    things: countIn(counts, state),
    aboveSla: countIn(late, state),
  }));
}

export interface WorkDepth {
  readonly kind: string;
  readonly due: number;
  readonly leased: number;
  readonly oldestDueSeconds: number;
}

export async function workDepth(db: Queryable, kinds: readonly string[]): Promise<WorkDepth[]> {
  const due = `greatest(wake_at, coalesce(lease_until, '-infinity'::timestamptz))`;
  return db.query<WorkDepth>(
    `with due as (
       select kind, count(*) as things, extract(epoch from now() - min(${due}))::float8 as oldest from work where ${due} <= now() and not parked group by kind),
     leased as (
       select kind, count(*) as things from work where lease_owner is not null and lease_until > now() group by kind)
     select k.kind, coalesce(due.things, 0) as due, coalesce(leased.things, 0) as leased, coalesce(due.oldest, 0) as "oldestDueSeconds"
       from unnest($1::text[]) as k(kind) left join due using (kind) left join leased using (kind) order by k.kind`,
    [kinds],
  );
}

export interface ClaimWaits {
  readonly kind: string;
  /** Things of the kind that wait for a claim, each once, whatever the number of claims. */
  readonly things: number;
  readonly oldestSeconds: number;
}

/** There are as many claims as there are things at work. */
export async function measureClaimWaits(db: Queryable, kinds: readonly string[]): Promise<ClaimWaits[]> {
  return db.query<ClaimWaits>(
    `select k.kind, count(distinct c.holder_id) as things,
            coalesce(extract(epoch from now() - min(c.requested_at)), 0)::float8 as "oldestSeconds"
       from unnest($1::text[]) as k(kind)
            left join claims c on c.holder_kind = k.kind and c.granted_at is null and c.joined_at is null
      group by k.kind order by k.kind`,
    [kinds],
  );
}

export interface PendingRequests {
  /** Such as maintenance. */
  readonly request: string;
  readonly things: number;
  readonly oldestSeconds: number;
}

/** Requests of a kind that wait or are carried out, one line a sort of request, also where there is none. */
export async function measureRequests(db: Queryable, { table, requests }: ThingStore): Promise<PendingRequests[]> {
  return Promise.all(
    Object.entries(requests).map(async ([field, { column }]) => {
      // The time is text that a service wrote: one that cannot be read counts as now, and spoils no page of metrics.
      const at = `case when ${column} ->> 'requested_at' ~ '^\\d{4}-\\d\\d-\\d\\dT' then (${column} ->> 'requested_at')::timestamptz else now() end`;
      const [row] = await db.query<{ things: number; oldest: number }>(
        `select count(*) as things, greatest(coalesce(extract(epoch from now() - min(${at})), 0), 0)::float8 as oldest
           from ${table} where ${column} is not null`,
      );
      const request = field.replace(/Request$/, "").replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      return { request, things: row?.things ?? 0, oldestSeconds: row?.oldest ?? 0 };
    }),
  );
}

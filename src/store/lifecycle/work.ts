import type { CauseCode } from "../../kernel/causes.ts";
import { type Duration, milliseconds } from "../../kernel/time/duration.ts";
import type { Queryable } from "../postgres/database.ts";
import { type OnTime, SHOWN_TIME } from "../postgres/database-time.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { storableText } from "../postgres/json-text.ts";
import type { ThingKey } from "./things.ts";

/** One thing that is due for a pass, leased to us. `epoch` fences: the next claim has a higher one. */
export interface ClaimedWork extends ThingKey {
  readonly epoch: number;
  /** Failed passes since the last that succeeded. */
  readonly failures: number;
}

export interface Release extends ThingKey {
  readonly epoch: number;
  /** When the next pass is due; null: only when woken. */
  readonly after: Duration | null;
  readonly failures: number;
  readonly error: string | null;
  /** Of the error. */
  readonly cause?: CauseCode | null;
  /** It has ended for good: it needs no further pass, even if it was woken in the meantime. */
  readonly over?: boolean;
}

/** When the next pass of a thing is due, and which replica works on it now. */
export interface PlannedPass extends ThingKey {
  /** Null: only when woken. */
  readonly wakeAt: Date | null;
  readonly leaseUntil: Date | null;
  readonly leaseOwner: string | null;
  readonly failures: number;
  readonly lastError: string | null;
  /** Of that; null in rows of a version that did not name causes. */
  readonly lastCause: string | null;
  /** Since a restored backup: no pass is made until a person has said so. */
  readonly isParked: boolean;
}

/** For those who only want to know; things that nobody ever woke are left out. */
export const findWork = (db: Queryable, keys: readonly ThingKey[]): Promise<PlannedPass[]> =>
  db.query<PlannedPass>(
    `select w.kind, w.id, nullif(w.wake_at, 'infinity') as "wakeAt", w.lease_until as "leaseUntil", w.lease_owner as "leaseOwner",
            w.failures, w.last_error as "lastError", w.last_cause as "lastCause", w.parked as "isParked"
       from work w join unnest($1::text[], $2::text[]) as t(kind, id) using (kind, id)`,
    [keys.map((key) => key.kind), keys.map((key) => key.id)],
  );

/** `least` passes over nulls, so that a thing without a lease is just woken. */
const WOKEN = "least(work.wake_at, excluded.wake_at, work.lease_until - interval '1 microsecond')";
const DUE = "greatest(wake_at, coalesce(lease_until, '-infinity'::timestamptz))";
/**
 * Nearly every row is of one of our kinds, but before the first ANALYZE the planner takes a plain `kind = any` for rare, fetches
 * everything due by it, and sorts that for each claim. Wrapped, it is neither an index condition nor thought rare.
 */
const OF_KINDS = (kinds: string) => `coalesce(kind = any(${kinds}), false)`;

/**
 * Makes the things due now. Under a lease this gives exactly one more pass after the present one: a wake-up is always
 * earlier than the lease's end, also one that comes when the lease is over and its owner has not noticed yet.
 */
export async function wake(tx: Queryable, keys: readonly ThingKey[]): Promise<void> {
  if (keys.length === 0) return;
  await tx.query({
    hot: true,
    text: `insert into work (kind, id, wake_at)
     select distinct kind, id, now() from unnest($1::text[], $2::text[]) as t(kind, id) order by kind, id
     on conflict (kind, id) do update set wake_at = ${WOKEN}`,
    values: [keys.map((key) => key.kind), keys.map((key) => key.id)],
  });
}

/**
 * Leases what is due, the longest due first. The lease in the database is longer than the owner's own view of it.
 *
 * Epochs follow the clock, so that they go on growing when a thing's row is removed and created again: counting from zero again,
 * the new owner's epoch could be the one that an owner of the removed thing still holds.
 */
export async function claim(
  db: Queryable,
  options: {
    readonly owner: string;
    readonly kinds: readonly string[];
    readonly limit: number;
    readonly leaseFor: Duration;
    /** Not called when there was nothing to claim. */
    readonly onTime?: OnTime;
  },
): Promise<ClaimedWork[]> {
  const rows = await db.query<ClaimedWork & Timed>(
    `with due as (
       select kind, id from work
        where ${DUE} <= now() and not parked and ${OF_KINDS("$3")}
        order by ${DUE} limit ${Math.floor(options.limit)}
          for update skip locked)
     update work w
        set lease_owner = $1, lease_until = now() + $2 * interval '1 ms', wake_at = now() + $2 * interval '1 ms',
            epoch = greatest(w.epoch + 1, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
       from due where w.kind = due.kind and w.id = due.id
     returning w.kind, w.id, w.epoch, w.failures, ${SHOWN_TIME}`,
    [options.owner, options.leaseFor, options.kinds],
  );
  const claimed = withoutTime(rows, options.onTime);
  failPoint("work:claimed", claimed);
  return claimed;
}

interface Timed {
  readonly shown: number;
}

function withoutTime<T extends object>(rows: readonly (T & Timed)[], onTime: OnTime | undefined): T[] {
  const [first] = rows;
  if (first !== undefined) onTime?.(first.shown);
  return rows.map(({ shown: _, ...row }) => row as unknown as T);
}

/** A lease of ours, and how long it is to last from now on. */
export interface RenewedWork extends ThingKey {
  readonly epoch: number;
  readonly leaseFor: Duration;
}

/**
 * Prolongs our leases; returns those that still are ours. Rows that a commit has locked right now are left for the next
 * time, since waiting for them here could deadlock with a commit that waits for one of ours.
 */
export async function renew(
  db: Queryable,
  options: {
    readonly owner: string;
    readonly held: readonly RenewedWork[];
    /** Not called when nothing is ours any more. */
    readonly onTime?: OnTime;
  },
): Promise<ThingKey[]> {
  if (options.held.length === 0) return [];
  return withoutTime(await renewed(db, options, "skip locked"), options.onTime);
}

/** Prolongs one lease, for what is about to begin under it. Returns whether it still is ours. */
export async function prolong(db: Queryable, owner: string, held: RenewedWork): Promise<boolean> {
  const kept = await renewed(db, { owner, held: [held] }, "");
  return kept.length > 0;
}

const renewed = (
  db: Queryable,
  { owner, held }: { readonly owner: string; readonly held: readonly RenewedWork[] },
  locked: "skip locked" | "",
): Promise<(ThingKey & Timed)[]> =>
  db.query<ThingKey & Timed>(
    `with mine as (
       select w.kind, w.id, now() + h.lease_ms * interval '1 ms' as until from work w
         join unnest($2::text[], $3::text[], $4::bigint[], $5::float8[]) as h(kind, id, epoch, lease_ms) using (kind, id, epoch)
        where w.lease_owner = $1 for update of w ${locked})
     update work w
        set lease_until = mine.until, wake_at = case when w.wake_at < w.lease_until then w.wake_at else mine.until end
       from mine where w.kind = mine.kind and w.id = mine.id
     returning w.kind, w.id, ${SHOWN_TIME}`,
    [
      owner,
      held.map((work) => work.kind),
      held.map((work) => work.id),
      held.map((work) => work.epoch),
      held.map((work) => work.leaseFor),
    ],
  );

/**
 * Gives leases back. A thing that was woken meanwhile stays due, and one that is over has no row any more: ended things are most of
 * what there is in the long run. A lease that is no longer ours, or was released already, is left alone. Rows are locked in the
 * order in which `wake` locks them, so that the two never wait for each other.
 *
 * Returns how many of them are due at once: nobody else says so.
 */
export async function release(db: Queryable, releases: readonly Release[]): Promise<number> {
  if (releases.length === 0) return 0;
  const [counted] = await db.query<{ due: number }>({
    hot: true,
    text: `with ours as (
       select w.kind, w.id, r.after_ms, r.failures, r.error, r.cause, r.over from work w
         join unnest($1::text[], $2::text[], $3::bigint[], $4::float8[], $5::int[], $6::text[], $7::text[], $8::boolean[])
              as r(kind, id, epoch, after_ms, failures, error, cause, over) using (kind, id, epoch)
        where w.lease_until is not null order by w.kind, w.id for update of w),
     ended as (delete from work w using ours r where r.over and w.kind = r.kind and w.id = r.id),
     given_back as (update work w
        set lease_until = null, lease_owner = null, failures = r.failures, last_error = r.error, last_cause = r.cause,
            wake_at = least(case when w.wake_at < w.lease_until then w.wake_at end,
                            case when r.after_ms is null then 'infinity'::timestamptz else now() + r.after_ms * interval '1 ms' end)
       from ours r where not r.over and w.kind = r.kind and w.id = r.id
     returning w.wake_at)
     select count(*)::int as due from given_back where wake_at <= now()`,
    values: [
      releases.map((one) => one.kind),
      releases.map((one) => one.id),
      releases.map((one) => one.epoch),
      releases.map((one) => one.after),
      releases.map((one) => one.failures),
      releases.map((one) => (one.error === null ? null : storableText(one.error))),
      releases.map((one) => one.cause ?? null),
      releases.map((one) => one.over === true),
    ],
  });
  failPoint("work:released", releases);
  return counted?.due ?? 0;
}

/**
 * Releases leases in the owner's name that the owner does not know of, or could not release: a connection that broke took
 * the answer with it. Nothing is under way for them. Returns how many there were.
 */
export async function releaseUnheld(
  db: Queryable,
  { owner, held }: { readonly owner: string; readonly held: readonly ClaimedWork[] },
): Promise<number> {
  const rows = await db.query(
    `update work w set lease_until = null, lease_owner = null, wake_at = now()
      where w.lease_owner = $1 and not exists (
        select 1 from unnest($2::text[], $3::text[], $4::bigint[]) as h(kind, id, epoch)
         where h.kind = w.kind and h.id = w.id and h.epoch = w.epoch)
     returning w.id`,
    [owner, held.map((one) => one.kind), held.map((one) => one.id), held.map((one) => one.epoch)],
  );
  return rows.length;
}

/**
 * Locks the leases for the rest of the transaction; those not returned have been taken over by somebody else. What will be woken is
 * locked with them, all in one order: two transactions that each wake what the other has leased would wait for each other.
 */
export async function fence(
  tx: Queryable,
  held: readonly (ThingKey & { readonly epoch: number })[],
  woken: readonly ThingKey[] = [],
): Promise<ThingKey[]> {
  const locked = [...held, ...woken.map(({ kind, id }) => ({ kind, id, epoch: null }))];
  if (locked.length === 0) return [];
  const rows = await tx.query<ThingKey & { readonly isOurs: boolean }>({
    hot: true,
    text: `select w.kind, w.id, h.epoch is not null as "isOurs" from work w
       join unnest($1::text[], $2::text[], $3::bigint[]) as h(kind, id, epoch) using (kind, id)
      where h.epoch is null or h.epoch = w.epoch
       order by w.kind, w.id for update of w`,
    values: [locked.map((one) => one.kind), locked.map((one) => one.id), locked.map((one) => one.epoch)],
  });
  return rows.flatMap(({ kind, id, isOurs }) => (isOurs ? [{ kind, id }] : []));
}

export async function forget(tx: Queryable, keys: readonly ThingKey[]): Promise<void> {
  if (keys.length === 0) return;
  await tx.query(
    `delete from work w using unnest($1::text[], $2::text[]) as t(kind, id) where w.kind = t.kind and w.id = t.id`,
    [keys.map((key) => key.kind), keys.map((key) => key.id)],
  );
}

/** Ends the passes of a thing that is gone, unless it was woken in the meantime: then it may have been created again. */
export async function forgetClaimed(
  db: Queryable,
  { kind, id, epoch }: ThingKey & { readonly epoch: number },
): Promise<void> {
  const deleted = await db.query(
    `delete from work where kind = $1 and id = $2 and epoch = $3 and wake_at >= lease_until returning id`,
    [kind, id, epoch],
  );
  if (deleted.length === 0) await release(db, [{ kind, id, epoch, after: milliseconds(0), failures: 0, error: null }]);
}

/** Ends all leases; only for a caller that knows that no other replica is alive. What was leased is due at once. */
export async function freeLeases(db: Queryable): Promise<void> {
  await db.query(
    `update work set lease_until = null, lease_owner = null, epoch = epoch + 1, wake_at = least(wake_at, now())
      where lease_owner is not null`,
  );
}

/** When the next thing falls due, as milliseconds from now; null when nothing will by itself. */
export async function untilNextDue(db: Queryable, kinds: readonly string[], onTime?: OnTime): Promise<number | null> {
  const [row] = await db.query<Timed & { wait: number | null }>({
    hot: true,
    text: `select ${SHOWN_TIME}, (select extract(epoch from ${DUE} - now())::float8 * 1000
       from work where ${OF_KINDS("$1")} and not parked and ${DUE} < 'infinity' order by ${DUE} limit 1) as wait`,
    values: [kinds],
  });
  if (row) onTime?.(row.shown);
  return row?.wait ?? null;
}

/**
 * The safety net: wakes things that need a pass and have no wake-up of their own. Those that have ended are named by
 * nobody here: they are most of what there is in the long run, and are not even read. While a restored backup is being sorted, nothing is woken
 * that is not known to be harmless.
 */
export async function wakeStranded(
  db: Queryable,
  thing: {
    readonly kind: string;
    readonly table: string;
    readonly liveStates: readonly string[];
    /** Of those: where no pass is needed until the thing is woken. */
    readonly restingStates: readonly string[];
  },
): Promise<number> {
  const rows = await db.query<{ id: string }>(
    `insert into work (kind, id, wake_at)
     select $1, t.id, now() from ${thing.table} t left join work w on w.kind = $1 and w.id = t.id
      where t.state = any($3) and not exists (select from restore_reviews r where r.state = 'sorting')
        and (w.id is null or (w.lease_until is null and w.wake_at = 'infinity' and t.state <> all($2)))
      order by t.id
     on conflict (kind, id) do update set wake_at = ${WOKEN}
     returning id`,
    [thing.kind, thing.restingStates, thing.liveStates],
  );
  return rows.length;
}

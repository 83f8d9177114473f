import type { Duration } from "../../kernel/time/duration.ts";
import type { ThingKey } from "../lifecycle/things.ts";
import type { Queryable } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

/** A device whose events are ours to follow. `epoch` fences: the next claim has a higher one. */
export interface ClaimedStream extends ThingKey {
  readonly epoch: number;
  /** A digest of where its BMC is and how we sign in. */
  readonly place: string;
  /** Streams in a row that ended before they were of use. */
  readonly failures: number;
  /** All devices with the same one are behind one BMC, and share the stream; null: it has a BMC of its own. */
  readonly bmc: string | null;
}
type Held = Pick<ClaimedStream, "kind" | "id" | "epoch">;

export interface StreamRelease extends Held {
  readonly owner: string;
  readonly bmc: string | null;
  /** When it may be opened again. */
  readonly after: Duration;
  readonly failures: number;
  /** Why there is none; null: nothing is wrong. */
  readonly reason: string | null;
}

/** How a device is watched, for people. */
export interface WatchedBy extends ThingKey {
  /** Since when its events are followed; null: it is polled alone. */
  readonly liveSince: Date | null;
  /** Why no events are followed; null where that was not tried, or did not fail. */
  readonly reason: string | null;
}

/** When something came last for each of the streams, of those that are still ours; a text that changes with it. */
export async function listNews<T extends Held>(db: Queryable, held: readonly T[]): Promise<ReadonlyMap<T, string>> {
  const rows = await db.query<Held & { heard_at: string }>(
    `select kind, id, epoch, heard_at::text from event_streams join unnest($1::text[], $2::text[], $3::bigint[]) as h(kind, id, epoch)
      using (kind, id, epoch) where heard_at is not null`,
    [...keysOf(held)],
  );
  const found = new Map(rows.map(({ kind, id, heard_at }) => [`${kind} ${id}`, heard_at]));
  return new Map(
    held.flatMap((one) => {
      const at = found.get(`${one.kind} ${one.id}`);
      return at === undefined ? [] : [[one, at] as const];
    }),
  );
}

/** Something came at the address that a device was given under this epoch. Returns false where that is over. */
export async function noteNews(db: Queryable, { kind, id, epoch }: Held): Promise<boolean> {
  const rows = await db.query(
    "update event_streams set heard_at = now() where kind = $1 and id = $2 and epoch = $3 and owner is not null returning id",
    [kind, id, epoch],
  );
  return rows.length > 0;
}

const IS_HELD = "exists (select from event_holders h where h.owner = e.owner and h.alive_until > now())";

/** Whether the device's stream lives, for queries of others. `id` is a column of theirs. */
export const hasLiveEvents = (kind: string, id: string): string =>
  `exists (select from event_streams e where e.kind = '${kind}' and e.id = ${id} and e.live_since is not null and ${IS_HELD})`;

const PLACE = (...columns: readonly string[]) => `md5(concat_ws(' ', ${columns.join(", ")}, encode(s.nonce, 'hex')))`;

/**
 * Devices whose BMC may report events, each with its place. No password is sent where the certificate of a BMC is taken at first
 * sight: events are followed once one is pinned.
 */
const followable = (ofIds: (column: string) => string = () => "true"): string =>
  `select 'power_shelf' as kind, t.id, null as bmc,
          ${PLACE("t.bmc_address", "t.bmc_port", "t.bmc_scheme", "t.bmc_trust", "t.facts ->> 'certificateFingerprint'")} as place
     from power_shelves t join secrets s on s.name = 'bmc/' || t.bmc_mac
    where t.deleted_at is null and t.state in ('ready', 'maintenance', 'error') and ${ofIds("t.id")}
      and (t.bmc_trust <> 'pin' or t.bmc_scheme = 'http' or t.facts ->> 'certificateFingerprint' is not null)
   union all
   select 'machine', t.id, t.provider || ' ' || regexp_replace(t.bmc_endpoint, '^((https?://)?[^/]+).*$', '\\1'),
          ${PLACE("t.provider", "t.bmc_endpoint", "t.bmc_protocol", "t.bmc_trust", "t.facts ->> 'certificateFingerprint'")}
     from machines t join secrets s on s.name = 'bmc/' || t.id
    where t.state <> 'RETIRED' and t.provider in ('redfish', 'datacenter') and t.bmc_endpoint is not null and ${ofIds("t.id")}
      and (t.bmc_trust <> 'pin' or t.bmc_endpoint like 'http://%' or t.facts ->> 'certificateFingerprint' is not null)`;

/** Says that this replica lives, and for how long others may take that for granted. Replicas that are long gone are forgotten. */
export async function holdOn(db: Queryable, owner: string, aliveFor: Duration): Promise<void> {
  await db.query(
    `with gone as (delete from event_holders where alive_until < now() - interval '1 hour' and owner <> $1)
     insert into event_holders (owner, alive_until) values ($1, now() + $2 * interval '1 ms')
     on conflict (owner) do update set alive_until = excluded.alive_until`,
    [owner, aliveFor],
  );
}

/**
 * Takes in devices that are new, and forgets those that are gone. One that has moved, or has other credentials, loses its stream, and
 * whatever kept a replica from opening one is no reason any more.
 */
export async function noteDevices(db: Queryable): Promise<void> {
  await db.query(
    `with known as (${followable()}),
     gone as (delete from event_streams e where not exists (select from known where known.kind = e.kind and known.id = e.id))
     insert into event_streams as e (kind, id, place, bmc, due_at)
     select kind, id, place, bmc, now() from known order by kind, id
     on conflict (kind, id) do update
        set place = excluded.place, bmc = excluded.bmc,
            owner = null, epoch = e.epoch + 1, live_since = null, due_at = now(), failures = 0, reason = null
      where e.place <> excluded.place or e.bmc is distinct from excluded.bmc`,
  );
}

/**
 * Takes devices that no living replica follows, the longest due first. What others are claiming at the same moment is passed over. Of the
 * devices behind one BMC one has the stream: the first of those with the fewest failures, so that one with wrong credentials is passed over.
 */
export async function claimStreams(
  db: Queryable,
  { owner, limit }: { readonly owner: string; readonly limit: number },
): Promise<ClaimedStream[]> {
  const claimed = await db.query<ClaimedStream>(
    `with due as (
       select e.kind, e.id from event_streams e
        where e.due_at <= now() and (e.owner is null or not ${IS_HELD})
          and not exists (select from event_streams o
                           where o.bmc = e.bmc and (o.kind, o.id) <> (e.kind, e.id)
                             and (o.owner is not null and ${IS_HELD.replaceAll("e.owner", "o.owner")}
                                  or (o.failures, o.kind, o.id) < (e.failures, e.kind, e.id)))
        order by e.due_at limit ${Math.floor(limit)} for update skip locked)
     update event_streams e set owner = $1, epoch = e.epoch + 1, live_since = null
       from due where e.kind = due.kind and e.id = due.id
     returning e.kind, e.id, e.epoch, e.place, e.failures, e.bmc`,
    [owner],
  );
  failPoint("event-streams:claimed", claimed);
  return claimed;
}

const keysOf = (held: readonly Held[]) => [
  held.map(({ kind }) => kind),
  held.map(({ id }) => id),
  held.map(({ epoch }) => epoch),
];

/** Those that are still ours, of devices that are still where they were, with the credentials that we signed in with. */
export async function findHeld(db: Queryable, held: readonly ClaimedStream[]): Promise<ThingKey[]> {
  if (held.length === 0) return [];
  return db.query<ThingKey>(
    `select kind, id from (${followable((column) => `${column} = any($2)`)}) as known
       join unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) as held(kind, id, epoch, place) using (kind, id, place)
       join event_streams e using (kind, id, epoch)`,
    [...keysOf(held), held.map(({ place }) => place)],
  );
}

/** Says whether the stream lives, of all who share it. Returns false when it is not ours any more. */
export async function setLive(db: Queryable, { kind, id, epoch }: Held, isLive: boolean): Promise<boolean> {
  const rows = await db.query(
    `with ours as (
       update event_streams set live_since = case when $4 then coalesce(live_since, now()) end, reason = null
        where kind = $1 and id = $2 and epoch = $3 returning *),
     sharing as (
       update event_streams e set owner = case when $4 then ours.owner end, live_since = ours.live_since, reason = null
         from ours where e.bmc = ours.bmc and (e.kind, e.id) <> (ours.kind, ours.id) and (e.owner is null or e.owner = ours.owner))
     select id from ours`,
    [kind, id, epoch, isLive],
  );
  return rows.length > 0;
}

/** Devices that came to a BMC whose stream lives already. */
export async function shareStreams(db: Queryable, owner: string): Promise<void> {
  await db.query(
    `update event_streams e set owner = live.owner, live_since = live.live_since, reason = null
       from event_streams live where live.owner = $1 and live.live_since is not null and live.bmc = e.bmc and e.owner is null`,
    [owner],
  );
}

/** The devices of which a stream tells. */
export const findSharing = (db: Queryable, { kind, id, bmc }: ThingKey & Pick<ClaimedStream, "bmc">) =>
  bmc === null
    ? Promise.resolve([{ kind, id }])
    : db.query<ThingKey>("select kind, id from event_streams where bmc = $1 or (kind = $2 and id = $3)", [
        bmc,
        kind,
        id,
      ]);

/** What says nothing of the BMC: another device behind it may have credentials that do. */
const OWN_REASONS = [
  "credentials_rejected",
  "credentials_missing",
  "credentials_not_for_this_address",
  "sign_in_stopped",
  "forbidden",
  "target_gone",
];

/**
 * Gives streams back that have ended. One that another replica has claimed since is theirs. Who shared one is without it too, and a BMC that
 * offers none is not asked by each of them.
 */
export async function releaseStreams(db: Queryable, releases: readonly StreamRelease[]): Promise<void> {
  if (releases.length === 0) return;
  await db.query(
    `with r as (
       select * from unnest($1::text[], $2::text[], $3::bigint[], $4::float8[], $5::int[], $6::text[], $7::text[], $8::text[])
                as r(kind, id, epoch, after_ms, failures, reason, bmc, owner)),
     own as (
       update event_streams e
          set owner = null, live_since = null, due_at = now() + r.after_ms * interval '1 ms', failures = r.failures, reason = r.reason
         from r where e.kind = r.kind and e.id = r.id and e.epoch = r.epoch)
     update event_streams e
        set owner = null, live_since = null,
            due_at = case when r.reason = any($9) then e.due_at else now() + r.after_ms * interval '1 ms' end,
            failures = case when r.reason = any($9) then e.failures else r.failures end,
            reason = case when r.reason = any($9) then e.reason else r.reason end
       from r where e.bmc = r.bmc and (e.kind, e.id) <> (r.kind, r.id) and (e.owner is null or e.owner = r.owner)`,
    [
      ...keysOf(releases),
      releases.map(({ after }) => after),
      releases.map(({ failures }) => failures),
      releases.map(({ reason }) => reason),
      releases.map(({ bmc }) => bmc),
      releases.map(({ owner }) => owner),
      OWN_REASONS,
    ],
  );
  failPoint("event-streams:released", releases);
}

/** A replica that stops leaves its devices to the others. */
export async function letGo(db: Queryable, owner: string): Promise<void> {
  await db.query(
    `with ours as (update event_streams set owner = null, live_since = null, due_at = now() where owner = $1)
     delete from event_holders where owner = $1`,
    [owner],
  );
}

/** How devices are watched; those of which nothing is known are left out. */
export const findWatching = (db: Queryable, keys: readonly ThingKey[]): Promise<WatchedBy[]> =>
  db.query<WatchedBy>(
    `select e.kind, e.id, case when ${IS_HELD} then e.live_since end as "liveSince", e.reason
       from event_streams e join unnest($1::text[], $2::text[]) as t(kind, id) using (kind, id)`,
    [keys.map(({ kind }) => kind), keys.map(({ id }) => id)],
  );

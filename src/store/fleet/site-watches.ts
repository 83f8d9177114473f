import type { Duration } from "../../kernel/time/duration.ts";
import type { Queryable } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

/** A site whose machines are ours to list until the lease ends. `epoch` fences: the next claim has a higher one. */
export interface ClaimedSite {
  readonly site: string;
  readonly epoch: number;
}

/** A removed node is compared for this long: then nobody needs to be told any more that its machine is still there. */
export const REMOVED_ARE_WATCHED = "interval '1 day'";

/**
 * Leases sites that are due and have nodes that are bound to machines, the longest due first. What others are claiming at the same
 * moment is passed over. A site that is disabled is called by nobody.
 */
export async function claimSites(
  db: Queryable,
  { owner, limit, leaseFor }: { readonly owner: string; readonly limit: number; readonly leaseFor: Duration },
): Promise<ClaimedSite[]> {
  await db.execute(
    `insert into fleet_site_watches (site) select s.name from fleet_sites s
      where not exists (select 1 from fleet_site_watches w where w.site = s.name) on conflict do nothing`,
  );
  failPoint("fleet-site-watches:noted");
  const rows = await db.query<{ site: string; epoch: number }>(
    `with due as (
       select w.site from fleet_site_watches w join fleet_sites s on s.name = w.site
        where w.due_at <= now() and s.is_enabled and exists (
          select 1 from fleet_nodes n where n.site = w.site and n.facts ->> 'systemId' is not null
             and (n.state <> 'deleted' or n.state_since > now() - ${REMOVED_ARE_WATCHED}))
        order by w.due_at limit $3 for update of w skip locked)
     update fleet_site_watches w set due_at = now() + $2 * interval '1 ms', lease_owner = $1, epoch = w.epoch + 1
       from due where w.site = due.site returning w.site, w.epoch`,
    [owner, leaseFor, limit],
  );
  failPoint("fleet-site-watches:claimed");
  return rows;
}

export interface SiteRelease extends ClaimedSite {
  /** When it is due again. */
  readonly after: Duration;
  /** How many machines MAAS listed; or why it did not. */
  readonly listed: { readonly machines: number; readonly ago: Duration } | { readonly failure: string };
}

/** One that another replica has claimed since is theirs. */
export async function releaseSite(db: Queryable, { site, epoch, after, listed }: SiteRelease): Promise<void> {
  const answered = "machines" in listed ? listed : undefined;
  await db.execute(
    `update fleet_site_watches set due_at = now() + $3 * interval '1 ms', lease_owner = null,
            listed_at = coalesce(now() - $4 * interval '1 ms', listed_at), machines = coalesce($5, machines), failure = $6
      where site = $1 and epoch = $2`,
    [
      site,
      epoch,
      after,
      answered?.ago ?? null,
      answered?.machines ?? null,
      "failure" in listed ? listed.failure : null,
    ],
  );
  failPoint("fleet-site-watches:released");
}

/** Whether the site is still ours, for the rest of the transaction. */
export async function holdsSite(db: Queryable, { site, epoch }: ClaimedSite): Promise<boolean> {
  const rows = await db.query("select 1 from fleet_site_watches where site = $1 and epoch = $2 for update", [
    site,
    epoch,
  ]);
  return rows.length > 0;
}

/** How old the oldest listing is that nodes go by, in seconds; one that never was counts from when it was due. */
export async function measureWatches(
  db: Queryable,
): Promise<{ readonly ageSeconds: number; readonly failing: number }> {
  const [row] = await db.query<{ age: number | null; failing: number }>(
    `select max(extract(epoch from now() - coalesce(w.listed_at, s.created_at)))::float8 as age,
            count(*) filter (where w.failure is not null)::int as failing
       from fleet_site_watches w join fleet_sites s on s.name = w.site
      where s.is_enabled and exists (
        select 1 from fleet_nodes n where n.site = w.site and n.facts ->> 'systemId' is not null and n.state <> 'deleted')`,
  );
  return { ageSeconds: Math.max(0, row?.age ?? 0), failing: row?.failing ?? 0 };
}

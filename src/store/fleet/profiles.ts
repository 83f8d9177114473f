import { DEFAULT_POLICY, type FleetPolicy } from "../../lifecycles/fleet-node/policy.ts";
import type { Queryable, Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";

export interface FleetProfile {
  readonly site: string;
  readonly name: string;
  /** Whole: defaults are filled in. */
  readonly policy: FleetPolicy;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

interface ProfileRow extends Omit<FleetProfile, "policy"> {
  readonly policy: Partial<FleetPolicy>;
}

export interface ProfileQuery {
  readonly site?: string;
  readonly name?: string;
  /** Those behind this one, in the order of sites and names. */
  readonly after?: readonly string[] | undefined;
  readonly limit?: number;
}

export async function listProfiles(db: Queryable, query: ProfileQuery = {}): Promise<FleetProfile[]> {
  const [afterSite = null, afterName = null] = query.after ?? [];
  const rows = await db.query<ProfileRow>(
    `select site, name, policy, created_at as "createdAt", updated_at as "updatedAt" from fleet_profiles
      where ($1::text is null or site = $1) and ($2::text is null or name = $2)
        and ($3::text is null or (site, name) > ($3, $4))
      order by site, name limit $5`,
    [query.site ?? null, query.name ?? null, afterSite, afterName, query.limit ?? null],
  );
  return rows.map((row) => ({ ...row, policy: { ...DEFAULT_POLICY, ...row.policy } }));
}

/** Makes the profile, or replaces the one of that name; the caller holds the lock of the site. */
export async function putProfile(
  tx: Transaction,
  profile: {
    readonly site: string;
    readonly name: string;
    readonly policy: Partial<FleetPolicy>;
    readonly createdBy: string;
  },
): Promise<void> {
  await tx.execute(
    `insert into fleet_profiles (site, name, policy, created_by) values ($1, $2, $3, $4)
     on conflict (site, name) do update set policy = excluded.policy, updated_at = now()`,
    [profile.site, profile.name, JSON.stringify(profile.policy), profile.createdBy],
  );
  failPoint("fleet-profiles:written");
}

/** The caller holds the lock of the site. */
export async function removeProfile(tx: Transaction, site: string, name: string): Promise<boolean> {
  const removed = await tx.execute(`delete from fleet_profiles where site = $1 and name = $2`, [site, name]);
  failPoint("fleet-profiles:removed");
  return removed > 0;
}

import { type Duration, milliseconds } from "../../kernel/time/duration.ts";
import type { Queryable } from "../postgres/database.ts";

/** Enough for a median, and few enough to be read for one caller. */
const NEWEST = 50;

export interface MaintenanceShape {
  /** Of the racks; null: those without one. */
  readonly profileId: string | null;
  /** The stages that are carried out, in their order. */
  readonly stages: readonly string[];
  /** Whether a device is flashed: most of the time goes there. */
  readonly flashes: boolean;
}

/**
 * How long maintenances of this shape took that succeeded: from their begin until the rack was validated. Undefined: there was none.
 * Nothing is written for it: runs keep when they began and ended.
 */
export async function readMaintenanceDuration(
  db: Queryable,
  { profileId, stages, flashes }: MaintenanceShape,
): Promise<{ readonly median: Duration; readonly runs: number } | undefined> {
  const [row] = await db.query<{ median_ms: number | null; runs: number }>(
    `with past as (
       select r.id, r.target_id, r.created_at, r.state_since from runs r join racks k on k.id = r.target_id
        where r.target_kind = 'rack' and r.state = 'SUCCEEDED' and r.plan ->> 'workflow' = 'rack_maintenance'
          and k.rack_profile_id is not distinct from $1
          and array(select s ->> 'name' from jsonb_array_elements(r.plan -> 'steps') with ordinality as p(s, at)
                     where not s -> 'payload' ? 'skip' order by at) = $2::text[]
          and $3 = exists (
            select from runs c cross join lateral jsonb_array_elements(c.facts -> 'steps') as v(visit)
             where c.parent_run_id = r.id and v.visit ->> 'name' like 'update\\_%' and v.visit ->> 'verdict' <> 'unchanged')
        order by r.created_at desc, r.id desc limit ${NEWEST}),
     validated as (
       select p.id, p.created_at, coalesce((
         select v.state_since from runs v where v.target_kind = 'rack' and v.target_id = p.target_id
            and v.plan ->> 'workflow' = 'rack_validation' and v.state = 'SUCCEEDED' and v.created_at >= p.state_since
          order by v.created_at, v.id limit 1), p.state_since) as ended_at from past p)
     select percentile_cont(0.5) within group (order by extract(epoch from ended_at - created_at))::float8 * 1000 as median_ms,
            count(*)::int as runs from validated`,
    [profileId, stages, flashes],
  );
  if (!row || row.median_ms === null) return undefined;
  return { median: milliseconds(Math.round(row.median_ms)), runs: row.runs };
}

import type { Queryable } from "../../../src/store/postgres/database.ts";

/** A run that the maintenance of a rack has started on a device. */
export interface ChildRow {
  readonly target: string;
  readonly state: string;
  readonly kinds: readonly string[];
  readonly unproven: boolean;
}

/** The runs on the devices of a rack, in the order in which they were started. */
export const listChildren = (db: Queryable, rackId: string): Promise<readonly ChildRow[]> =>
  db.query<ChildRow>(
    `select t.target_id as target, t.state, (select array_agg(s ->> 'kind') from jsonb_array_elements(t.plan -> 'steps') s) as kinds,
            coalesce(t.facts -> 'unproven', 'null') <> 'null' as unproven
       from runs t join runs p on p.id = t.parent_run_id
      where p.target_kind = 'rack' and p.target_id = $1 order by t.created_at, t.target_id`,
    [rackId],
  );

import { ACTIVE_RUN_PHASES } from "../../runs/model/run.ts";
import type { ThingKey } from "../lifecycle/things.ts";
import type { Queryable } from "../postgres/database.ts";

/** The active runs that its steps have started, those that they have started, and so on. One that cannot be read is one, too. */
export async function activeRunsBelow(db: Queryable, id: string): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(
    `with recursive below as (
       select id from runs where parent_run_id = $1
       union select c.id from runs c join below on c.parent_run_id = below.id)
     select r.id from runs r join below using (id) where r.state = any($2) order by r.id`,
    [id, ACTIVE_RUN_PHASES],
  );
  return rows.map((row) => row.id);
}

/** Of these runs, those that have not ended. */
export async function activeRunsOf(db: Queryable, ids: readonly string[]): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(
    "select id from runs where id = any($1) and state = any($2) order by id",
    [ids, ACTIVE_RUN_PHASES],
  );
  return rows.map(({ id }) => id);
}

/** What a run works on, also where nothing else of it can be read. */
export async function targetOfRun(db: Queryable, id: string): Promise<ThingKey | undefined> {
  const [row] = await db.query<ThingKey>(
    `select case when machine_id is null then target_kind else 'machine' end as kind, coalesce(machine_id, target_id) as id
       from runs where id = $1`,
    [id],
  );
  return row;
}

/** The installs that these runs have ordered, and that have not ended. */
export async function installsOrderedBy(db: Queryable, runs: readonly string[]): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(
    "select t.id from installs t where t.facts ->> 'orderedBy' = any($1) and t.state in ('pending', 'installing') order by t.id",
    [runs],
  );
  return rows.map(({ id }) => id);
}

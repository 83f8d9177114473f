import type { Queryable } from "../postgres/database.ts";

/** The installs that these runs have ordered, and that have not ended. */
export async function installsOrderedBy(db: Queryable, runs: readonly string[]): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(
    "select t.id from installs t where t.facts ->> 'orderedBy' = any($1) and t.state in ('pending', 'installing') order by t.id",
    [runs],
  );
  return rows.map(({ id }) => id);
}

import type { Queryable } from "../postgres/database.ts";

/** The rows of a table that name the rack in this column. */
export async function listRackNamers(
  db: Queryable,
  { table, column, rackId }: { readonly table: string; readonly column: "rack" | "rack_id"; readonly rackId: string },
): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(`select id from ${table} where ${column} = $1 order by id`, [rackId]);
  return rows.map(({ id }) => id);
}

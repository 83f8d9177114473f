import type { Database } from "../../src/store/postgres/database.ts";

/**
 * Everything that a database holds, row by row and with who wrote each row when: a row that was written anew with the same values,
 * or only locked, makes a difference too.
 */
export async function dumpDatabase(db: Database): Promise<Readonly<Record<string, readonly string[]>>> {
  const dump: Record<string, readonly string[]> = {};
  const tables = await db.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema') order by 1`,
  );
  for (const { name } of tables) {
    const rows = await db.query<{ row: string }>(
      `select concat_ws(' ', t.ctid, t.xmin, t.xmax, t::text) as row from ${name} t order by t.ctid`,
    );
    dump[name] = rows.map(({ row }) => row);
  }
  const sequences = await db.query<{ row: string }>(
    `select format('%s.%s %s', schemaname, sequencename, last_value) as row from pg_sequences order by 1`,
  );
  return { ...dump, sequences: sequences.map(({ row }) => row) };
}

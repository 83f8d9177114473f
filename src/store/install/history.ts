import type { JournalRow } from "../lifecycle/journal.ts";
import type { Queryable } from "../postgres/database.ts";

export interface EntryPage {
  readonly id: string;
  readonly limit: number;
  readonly offset: number;
  /** Only transitions from one state to another; otherwise everything that happened. */
  readonly transitionsOnly: boolean;
  readonly type?: string | undefined;
}

/** An install's entries, newest first, with how many there are in all. */
export async function pageEntries(
  db: Queryable,
  { id, limit, offset, transitionsOnly, type }: EntryPage,
): Promise<{ readonly rows: readonly JournalRow[]; readonly total: number }> {
  const where = `j.kind = 'install' and j.id = $1 and ($2::text is null or j.type = $2)
    ${transitionsOnly ? "and j.type = 'transition' and j.from_state <> j.to_state" : ""}`;
  const values = [id, type ?? null];
  const rows = await db.query<JournalRow>(
    `select j.epoch || '.' || j.xid::text || '.' || j.seq as cursor, j.at, j.kind, j.id, j.version, j.type,
            j.from_state as "from", j.to_state as "to", j.owner, j.actor, j.address, j.reason, j.data
       from journal j where ${where} order by j.epoch desc, j.xid desc, j.seq desc
      limit ${Math.floor(limit)} offset ${Math.floor(offset)}`,
    values,
  );
  const [counted] = await db.query<{ total: number }>(`select count(*) as total from journal j where ${where}`, values);
  return { rows, total: counted?.total ?? 0 };
}

export interface InstallStats {
  readonly total: number;
  readonly byState: Readonly<Record<string, number>>;
  readonly discoveredLastHour: number;
}

export async function countInstalls(db: Queryable): Promise<InstallStats> {
  const counts = await db.query<{ state: string; count: number }>(
    `select state, count(*) as count from installs group by state`,
  );
  const [recent] = await db.query<{ count: number }>(
    `select count(*) as count from installs where created_at > now() - interval '1 hour'`,
  );
  return {
    total: counts.reduce((sum, { count }) => sum + count, 0),
    byState: Object.fromEntries(counts.map(({ state, count }) => [state, count])),
    discoveredLastHour: recent?.count ?? 0,
  };
}

/** Nodes that have been installing for longer than this, the longest first, with how many there are in all. */
export async function listStalled(
  db: Queryable,
  olderThanMs: number,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<{ readonly ids: readonly string[]; readonly total: number }> {
  const where = `state = 'installing' and state_since < now() - $1 * interval '1 ms'`;
  const rows = await db.query<{ id: string }>(
    `select id from installs where ${where} order by state_since, id
      limit ${Math.floor(limit)} offset ${Math.floor(offset)}`,
    [olderThanMs],
  );
  const [counted] = await db.query<{ total: number }>(`select count(*) as total from installs where ${where}`, [
    olderThanMs,
  ]);
  return { ids: rows.map(({ id }) => id), total: counted?.total ?? 0 };
}

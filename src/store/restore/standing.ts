import type { Queryable } from "../postgres/database.ts";

/** What tells one database of a server from all others, and from its own copies. */
export interface DatabaseIdentity {
  /** Null where the server does not tell. */
  readonly systemIdentifier: string | null;
  readonly databaseOid: number;
  readonly journalOid: number;
}

/** The database as it is, and as it says of itself. */
export interface Standing {
  /** Null: no server has written it down yet. */
  readonly recorded: (DatabaseIdentity & { readonly databaseId: string; readonly generation: number }) | null;
  readonly actual: DatabaseIdentity;
  /** Witnesses that were silent since before this time are forgotten. */
  readonly witnessesSince: Date | null;
  /** The beat of the witness that was asked for; null: it has none here. */
  readonly beat: number | null;
  /** The cursor of the newest entry of the journal; null: there is none. */
  readonly newest: string | null;
  readonly newestAt: Date | null;
  /** The newest entry is of a transaction that is yet to come: a dump was restored. */
  readonly isAhead: boolean;
}

interface Row {
  database_id: string | null;
  generation: number;
  system_identifier: string | null;
  database_oid: number;
  journal_oid: number;
  witnesses_since: Date | null;
  actual_system: string | null;
  actual_database: number;
  actual_journal: number;
  beat: number | null;
  newest: string | null;
  newest_at: Date | null;
  is_ahead: boolean | null;
}

/** Some hosted servers keep the function from ordinary users: then the other two have to tell. */
async function mayReadSystem(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ may: boolean }>(
    "select has_function_privilege('pg_catalog.pg_control_system()', 'execute') as may",
  );
  return row?.may === true;
}

/** Reads only, and next to nothing: every new connection asks. */
export async function readStanding(db: Queryable, witness: string | null): Promise<Standing> {
  const system = (await mayReadSystem(db))
    ? "(select system_identifier::text from pg_catalog.pg_control_system())"
    : "null::text";
  const [row] = await db.query<Row>(
    `select i.database_id::text, i.generation, i.system_identifier, i.database_oid, i.journal_oid, i.witnesses_since,
            ${system} as actual_system,
            (select oid::bigint from pg_catalog.pg_database where datname = current_database()) as actual_database,
            'journal'::regclass::oid::bigint as actual_journal,
            (select w.beat from database_witnesses w where w.id = $1) as beat,
            n.epoch || '.' || n.xid::text || '.' || n.seq as newest, n.at as newest_at,
            n.epoch = (select epoch from journal_epoch) and n.xid >= pg_snapshot_xmax(pg_current_snapshot()) as is_ahead
       from (select 1) as one left join database_identity i on true
            left join lateral (select j.epoch, j.xid, j.seq, j.at from journal j order by j.epoch desc, j.xid desc, j.seq desc limit 1) n on true`,
    [witness],
  );
  if (!row) throw new Error("the database does not say which it is");
  return {
    recorded:
      row.database_id === null
        ? null
        : {
            databaseId: row.database_id,
            generation: row.generation,
            systemIdentifier: row.system_identifier,
            databaseOid: row.database_oid,
            journalOid: row.journal_oid,
          },
    actual: {
      systemIdentifier: row.actual_system,
      databaseOid: row.actual_database,
      journalOid: row.actual_journal,
    },
    witnessesSince: row.witnesses_since,
    beat: row.beat,
    newest: row.newest,
    newestAt: row.newest_at,
    isAhead: row.is_ahead === true,
  };
}

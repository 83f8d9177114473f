import pg from "pg";
import { inject } from "vitest";
import { silentLog } from "../../src/kernel/log.ts";
import { type Database, type DatabaseOptions, openDatabase } from "../../src/store/postgres/database.ts";
import { databaseUrl } from "./database-url.ts";

export interface TestDatabase {
  readonly db: Database;
  readonly url: string;
  /** For a `pg.Client` of one's own. */
  readonly pgConfig: { readonly connectionString: string };
  readonly name: string;
  /** Closes `db` and keeps the database, so that others can be cloned from it. */
  close(): Promise<void>;
  /** Closes `db` and removes the database, whoever else is still connected to it. */
  drop(): Promise<void>;
}

let count = 0;

/** A database of one's own with all migrations in it; `empty` gives one without, `clone` one like another that nobody uses. */
export async function createTestDatabase(
  options: { empty?: boolean; clone?: TestDatabase } & Partial<DatabaseOptions> = {},
): Promise<TestDatabase> {
  const { empty = false, clone, ...databaseOptions } = options;
  const { adminUrl, template } = inject("testServer");
  count += 1;
  const name = `${template}_${process.pid}_${count}`;
  const like = empty ? "template0" : (clone?.name ?? template);
  await administrate(adminUrl, `CREATE DATABASE ${name} TEMPLATE ${like} STRATEGY FILE_COPY`); // the least work for the server
  const url = databaseUrl(adminUrl, name);
  const db = openDatabase(url, { log: silentLog, applicationName: "millwright-test", ...databaseOptions });
  // A copy that is meant: to a server it would look like a restored backup.
  if (clone) await db.execute("delete from database_identity");
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= db.close();
    return closing;
  };
  const drop = async () => {
    await close();
    await administrate(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  };
  return { db, url, pgConfig: { connectionString: url }, name, close, drop };
}

async function administrate(url: string, statement: string): Promise<void> {
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  try {
    await admin.query(statement);
  } finally {
    await admin.end();
  }
}

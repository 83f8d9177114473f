import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";
import { AppError, messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import { clientConfig, type DatabaseConfig } from "./database.ts";
import { databaseError } from "./database-errors.ts";
import { failPoint } from "./fail-points.ts";
import { HostClient } from "./host-client.ts";

/** Beside `src/` in a checkout, beside `dist/` in a package: two up from here in both. */
export const MIGRATIONS_DIRECTORY = join(import.meta.dirname, "..", "..", "..", "migrations");

const OLDEST_SERVER = 14;
/** At the top of a migration that takes away what the version before needs, with why. */
const ENDS_EARLIER = /^-- Ends earlier servers: ./m;
/** Any number will do, as long as all replicas take the same and nothing else does. */
const LOCK_KEY = "6011957130427183629";
const LOCK_POLL_MS = 100;

export interface Migration {
  /** `0001_foundation`: its place in the order, and its name. */
  readonly id: string;
  readonly sql: string;
  readonly checksum: string;
  /** Servers of the version before cannot work with what it leaves. All others only add. */
  readonly endsEarlier: boolean;
}

interface Applied {
  readonly checksum: string;
  readonly endsEarlier: boolean;
}

export interface MigrateOptions {
  readonly log: Log;
  readonly signal?: AbortSignal;
  readonly directory?: string;
}

/**
 * Brings the database to this version's schema and returns what it applied.
 *
 * Replicas may all call it at once: one applies, the others wait for it. The lock belongs to the connection, so that a
 * replica killed in the middle lets go of it, and its unfinished migration is rolled back.
 *
 * A database that a later version has migrated is left as it is, and served, as long as its migrations only add: so a replica that is
 * replaced last may restart until then, and a version can be rolled back.
 */
export async function migrate(config: DatabaseConfig, options: MigrateOptions): Promise<readonly string[]> {
  const { log, signal, directory = MIGRATIONS_DIRECTORY } = options;
  const migrations = await readMigrations(directory);
  const client = new HostClient({ ...clientConfig(config, "millwright-migrate"), connectionTimeoutMillis: 10_000 });
  client.on("error", (error) => log.warn({ error: messageOf(error) }, "the connection for migrations broke"));
  try {
    await client.connect();
    await client.query("SET lock_timeout = '30s'");
    await requireSupportedServer(client);
    await takeLock(client, log, signal);
    const applied = await appliedMigrations(client);
    const pending = pendingMigrations(migrations, applied);
    const later = laterMigrations(migrations, applied);
    if (later.length > 0)
      log.info({ migrations: later }, "a later version has migrated the database; this one works on it");
    for (const migration of pending) {
      signal?.throwIfAborted();
      await apply(client, migration);
      log.info({ migration: migration.id }, "migrated the database");
    }
    return pending.map(({ id }) => id);
  } catch (error) {
    throw databaseError(error);
  } finally {
    await client.end().catch(() => {});
  }
}

/** What `migrate` would apply, in its order. Changes nothing, and waits for nobody; refuses what `migrate` refuses. */
export async function planMigrations(
  config: DatabaseConfig,
  { directory = MIGRATIONS_DIRECTORY } = {},
): Promise<readonly Migration[]> {
  const migrations = await readMigrations(directory);
  const client = new HostClient({ ...clientConfig(config, "millwright-migrate"), connectionTimeoutMillis: 10_000 });
  client.on("error", () => {}); // the statement fails, and says why
  try {
    await client.connect();
    await requireSupportedServer(client);
    const { rows } = await client.query<{ is: boolean }>("SELECT to_regclass('schema_migrations') IS NOT NULL AS is");
    return pendingMigrations(migrations, rows[0]?.is === true ? await readApplied(client) : new Map());
  } catch (error) {
    throw databaseError(error);
  } finally {
    await client.end().catch(() => {});
  }
}

export async function readMigrations(directory: string): Promise<readonly Migration[]> {
  const files = (await readdir(directory)).filter((name) => name.endsWith(".sql")).sort();
  const seen = new Map<string, string>();
  for (const file of files) {
    const number = /^(\d{4})_[a-z0-9_]+\.sql$/.exec(file)?.[1];
    if (number === undefined)
      throw new AppError("internal", `migration ${file} is not named like 0001_what_it_does.sql`);
    const twin = seen.get(number);
    if (twin !== undefined)
      throw new AppError("internal", `migrations ${twin} and ${file} have the same number: renumber the newer one`);
    seen.set(number, file);
  }
  return Promise.all(
    files.map(async (file) => {
      // Line ends are not content: a checkout that changed them did not change the migration.
      const sql = (await readFile(join(directory, file), "utf8")).replaceAll("\r\n", "\n");
      const checksum = createHash("sha256").update(sql).digest("hex");
      return { id: file.slice(0, -".sql".length), sql, checksum, endsEarlier: ENDS_EARLIER.test(sql) };
    }),
  );
}

/** What a later version has applied: all of it comes after what this one knows. */
function laterMigrations(migrations: readonly Migration[], applied: ReadonlyMap<string, Applied>): readonly string[] {
  const newest = migrations.at(-1)?.id ?? "";
  return [...applied.keys()].filter((id) => id > newest).sort();
}

/** What is left to apply; refuses a database whose past is not ours. */
function pendingMigrations(
  migrations: readonly Migration[],
  applied: ReadonlyMap<string, Applied>,
): readonly Migration[] {
  const known = new Map(migrations.map((migration) => [migration.id, migration]));
  const later = new Set(laterMigrations(migrations, applied));
  for (const [id, { checksum, endsEarlier }] of applied) {
    const migration = known.get(id);
    if (migration === undefined && later.has(id) && !endsEarlier) continue;
    if (migration === undefined) {
      throw new AppError(
        "failed_precondition",
        `the database has migration ${id}, which this version of Millwright does not know`,
        {
          next: "run the version that made it, or a newer one",
        },
      );
    }
    if (migration.checksum !== checksum) {
      throw new AppError(
        "failed_precondition",
        `migration ${id} was changed after it had been applied to this database`,
        {
          next: `restore migrations/${id}.sql and put the change into a new migration`,
        },
      );
    }
  }
  const newest = [...applied.keys()].sort().at(-1) ?? "";
  const pending = migrations.filter(({ id }) => !applied.has(id));
  const late = pending.find(({ id }) => id < newest);
  if (late === undefined) return pending;
  throw new AppError(
    "failed_precondition",
    `migration ${late.id} is missing in this database, although ${newest} was applied`,
    {
      next: "give it a number after all that were applied",
    },
  );
}

async function requireSupportedServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ major: number; version: string }>(
    "SELECT current_setting('server_version_num')::int / 10000 AS major, current_setting('server_version') AS version",
  );
  const [server] = rows;
  if (server !== undefined && server.major >= OLDEST_SERVER) return;
  throw new AppError(
    "failed_precondition",
    `the database is PostgreSQL ${server?.version}, Millwright needs ${OLDEST_SERVER} or newer`,
    {
      next: "set MILLWRIGHT_DATABASE_URL to a newer server, or unset it to use the embedded one",
    },
  );
}

/** Asked for again and again rather than waited for: a waiting statement would run into timeouts and cannot be aborted. */
async function takeLock(client: pg.Client, log: Log, signal: AbortSignal | undefined): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const { rows } = await client.query<{ taken: boolean }>("SELECT pg_try_advisory_lock($1) AS taken", [LOCK_KEY]);
    if (rows[0]?.taken === true) return;
    if (attempt === 0) log.info({}, "waiting for another replica to migrate the database");
    await delay(LOCK_POLL_MS, undefined, signal && { signal }).catch(() => signal?.throwIfAborted());
  }
}

async function appliedMigrations(client: pg.Client): Promise<ReadonlyMap<string, Applied>> {
  await client.query(
    `CREATE TABLE IF NOT EXISTS schema_migrations (
       id         text        PRIMARY KEY,
       checksum   text        NOT NULL,
       applied_at timestamptz NOT NULL DEFAULT now()
     )`,
  );
  return readApplied(client);
}

/** Before migration 0108 the table does not say which migrations end earlier servers: none did. */
async function readApplied(client: pg.Client): Promise<ReadonlyMap<string, Applied>> {
  const { rows } = await client.query<Applied & { id: string }>(
    `SELECT m.id, m.checksum, coalesce((to_jsonb(m) ->> 'ends_earlier')::boolean, false) AS "endsEarlier" FROM schema_migrations m`,
  );
  return new Map(rows.map(({ id, ...applied }) => [id, applied]));
}

async function apply(client: pg.Client, { id, sql, checksum, endsEarlier }: Migration): Promise<void> {
  try {
    await client.query("BEGIN");
    await client.query(sql);
    await client.query("INSERT INTO schema_migrations (id, checksum) VALUES ($1, $2)", [id, checksum]);
    if (endsEarlier) await client.query("UPDATE schema_migrations SET ends_earlier = true WHERE id = $1", [id]);
    failPoint("migrate:applied");
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {}); // of a broken connection there is nothing to roll back
    const mapped = databaseError(error);
    if (mapped instanceof AppError) throw mapped;
    throw new AppError(
      "internal",
      `migration ${id} failed${lineOf(sql, error)}: ${messageOf(error)}`,
      {},
      { cause: error },
    );
  }
}

function lineOf(sql: string, error: unknown): string {
  const position = error instanceof Error && "position" in error ? Number(error.position) : Number.NaN;
  return Number.isNaN(position) ? "" : ` in line ${sql.slice(0, position - 1).split("\n").length}`;
}

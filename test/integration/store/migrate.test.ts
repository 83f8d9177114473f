// @module-tag race
import { execFile } from "node:child_process";
import { copyFileSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "../../../src/kernel/log.ts";
import { MIGRATIONS_DIRECTORY, migrate, planMigrations, readMigrations } from "../../../src/store/postgres/migrate.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

const REPLICA = join(import.meta.dirname, "..", "..", "support", "processes", "migrate-once.ts");
const run = promisify(execFile);

let database: TestDatabase;
let directory: string;
beforeEach(async () => {
  database = await createTestDatabase({ empty: true });
  directory = mkdtempSync(join(tmpdir(), "millwright-migrations-"));
});
afterEach(async () => {
  await database.drop();
  rmSync(directory, { recursive: true });
});

const write = (file: string, sql: string) => writeFileSync(join(directory, file), sql);
const migrateNow = () => migrate(database.url, { log: silentLog, directory });
const tables = async () =>
  (
    await database.db.query<{ name: string }>(
      "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1",
    )
  ).map(({ name }) => name);

test("a plan shows what would be applied, in order, and changes nothing", async () => {
  write("0001_first.sql", "create table first ()");
  const planned = async () => (await planMigrations(database.url, { directory })).map(({ id }) => id);
  expect(await planned()).toEqual(["0001_first"]);
  expect(await tables()).toEqual([]);
  await migrateNow();
  write("0002_second.sql", "create table second ()");
  expect(await planned()).toEqual(["0002_second"]);
  await migrateNow();
  expect(await planned()).toEqual([]);
  write("0001_first.sql", "create table other ()");
  await expect(planned()).rejects.toThrow("migration 0001_first was changed");
});

test("the migrations that we ship apply to an empty database, and once", async () => {
  const shipped = (await readMigrations(MIGRATIONS_DIRECTORY)).map(({ id }) => id);
  expect(shipped.length).toBeGreaterThan(0);
  expect(await migrate(database.url, { log: silentLog })).toEqual(shipped);
  expect(await migrate(database.url, { log: silentLog })).toEqual([]);
});

test("applies what is new, in order", async () => {
  write("0002_b.sql", "ALTER TABLE a ADD COLUMN b int;");
  write("0001_a.sql", "CREATE TABLE a (); CREATE TABLE c ();");
  expect(await migrateNow()).toEqual(["0001_a", "0002_b"]);
  write("0003_d.sql", "DROP TABLE c;");
  expect(await migrateNow()).toEqual(["0003_d"]);
  expect(await tables()).toEqual(["a", "schema_migrations"]);
});

test("fleet nodes that share a machine of MAAS survive the upgrade, and no other comes to share one", async () => {
  const shipped = readdirSync(MIGRATIONS_DIRECTORY).filter((file) => file.endsWith(".sql"));
  const copy = (files: readonly string[]) => {
    for (const file of files) copyFileSync(join(MIGRATIONS_DIRECTORY, file), join(directory, file));
  };
  copy(shipped.filter((file) => file < "0100"));
  await migrateNow();
  const add = (id: string, systemId: string | null, state = "active") =>
    database.db.execute(
      `insert into fleet_nodes (id, site, profile, sku, hostname, mode, machine_id, request_id, fingerprint, created_by, state, facts)
       values ($1, 'lab', 'h100', 'gpu8', $1, 'maas', 'm-' || $1, $1, '', 'kim', $3, jsonb_build_object('systemId', $2::text))`,
      [id, systemId, state],
    );
  await database.db.execute(
    "insert into fleet_sites (name, url, created_by) values ('lab', 'http://192.0.2.1', 'kim')",
  );
  for (const id of ["fn-1", "fn-2"]) await add(id, "abc123");
  await add("fn-gone", "def456", "deleted");
  for (const id of ["fn-3", "fn-4"]) await add(id, null);
  copy(shipped.filter((file) => file >= "0100"));
  await migrateNow();
  const shared = await database.db.query("select id from fleet_nodes where shares_system order by id");
  expect(shared).toEqual([{ id: "fn-2" }]);
  await expect(add("fn-5", "abc123")).rejects.toThrow("fleet_nodes_one_system");
  await add("fn-6", "def456");
  const bind = "update fleet_nodes set facts = jsonb_build_object('systemId', $2::text) where id = $1";
  await expect(database.db.execute(bind, ["fn-3", "def456"])).rejects.toThrow("fleet_nodes_one_system");
  await database.db.execute(bind, ["fn-4", "ghi789"]);
});

test("several processes at once on an empty database all succeed, and each migration is applied by one of them", async () => {
  write("0001_a.sql", "CREATE TABLE a (n int); SELECT pg_sleep(0.2);");
  write("0002_b.sql", "INSERT INTO a VALUES (1);");
  const outputs = await Promise.all(
    Array.from({ length: 4 }, () => run(process.execPath, [REPLICA, database.url, directory], { cwd: "/", env: {} })),
  );
  const applied = outputs.flatMap(({ stdout }) => JSON.parse(stdout) as string[]);
  expect(applied).toEqual(["0001_a", "0002_b"]);
  expect(await database.db.query("SELECT n FROM a")).toEqual([{ n: 1 }]);
});

test("a migration that fails is undone whole, names its line, and what came before it stays", async () => {
  write("0001_a.sql", "CREATE TABLE a ();");
  write("0002_b.sql", "CREATE TABLE b ();\n\nCREATE TABEL c ();");
  await expect(migrateNow()).rejects.toThrow(/migration 0002_b failed in line 3: syntax error/);
  expect(await tables()).toEqual(["a", "schema_migrations"]);
  write("0002_b.sql", "CREATE TABLE b ();");
  expect(await migrateNow()).toEqual(["0002_b"]);
});

test("a migration changed after it was applied is refused; other line ends are no change", async () => {
  write("0001_a.sql", "CREATE TABLE a ();\nCREATE TABLE b ();\n");
  await migrateNow();
  write("0001_a.sql", "CREATE TABLE a ();\r\nCREATE TABLE b ();\r\n");
  expect(await migrateNow()).toEqual([]);
  write("0001_a.sql", "CREATE TABLE a ();");
  await expect(migrateNow()).rejects.toThrow("migration 0001_a was changed after it had been applied");
});

const MARKS = "alter table schema_migrations add column ends_earlier boolean not null default false;";

test("a database that a later version has added to is worked on, and left as it is", async () => {
  write("0001_a.sql", MARKS);
  write("0002_b.sql", "CREATE TABLE b ();");
  await migrateNow();
  renameSync(join(directory, "0002_b.sql"), join(directory, "later"));
  const told: string[] = [];
  const log = { ...silentLog, info: (_: object, message: string) => told.push(message) };
  expect(await migrate(database.url, { log, directory })).toEqual([]);
  expect(told).toEqual(["a later version has migrated the database; this one works on it"]);
  expect(await planMigrations(database.url, { directory })).toEqual([]);
  expect(await tables()).toEqual(["b", "schema_migrations"]);
  // What this one would still apply came before that: the two have not the same past.
  write("0001_z.sql", "CREATE TABLE z ();");
  rmSync(join(directory, "0001_a.sql"));
  await expect(migrateNow()).rejects.toThrow("which this version of Millwright does not know");
});

test("a database from which a later version has taken something away is refused and left alone", async () => {
  write("0001_a.sql", MARKS);
  write("0002_b.sql", "-- Ends earlier servers: they read what is dropped here.\nCREATE TABLE b ();");
  write("0003_c.sql", "CREATE TABLE c ();");
  await migrateNow();
  renameSync(join(directory, "0002_b.sql"), join(directory, "later"));
  renameSync(join(directory, "0003_c.sql"), join(directory, "even later"));
  await expect(migrateNow()).rejects.toMatchObject({
    kind: "failed_precondition",
    message: "the database has migration 0002_b, which this version of Millwright does not know",
  });
  expect(await tables()).toEqual(["b", "c", "schema_migrations"]);
});

test("a migration that comes late, before one already applied, is refused", async () => {
  write("0002_b.sql", "CREATE TABLE b ();");
  await migrateNow();
  write("0001_a.sql", "CREATE TABLE a ();");
  await expect(migrateNow()).rejects.toThrow(
    "migration 0001_a is missing in this database, although 0002_b was applied",
  );
});

test.each([
  [["0001_a.sql", "0001_b.sql"], "migrations 0001_a.sql and 0001_b.sql have the same number"],
  [["1_a.sql"], "migration 1_a.sql is not named like 0001_what_it_does.sql"],
])("files %j are refused", async (files, message) => {
  for (const file of files) write(file, "SELECT 1;");
  await expect(migrateNow()).rejects.toThrow(message);
});

test("can be given up while another replica migrates", async () => {
  const other = new pg.Client(database.pgConfig);
  await other.connect();
  await other.query("SELECT pg_advisory_lock(6011957130427183629)");
  const stop = new AbortController();
  const log = { ...silentLog, info: () => stop.abort(new Error("we are stopping")) };
  await expect(migrate(database.url, { log, directory, signal: stop.signal })).rejects.toThrow("we are stopping");
  await other.end();
  expect(await migrateNow()).toEqual([]);
});

test("a replica killed in the middle of a migration leaves nothing of it, and the next one applies it", async () => {
  write("0001_first.sql", "CREATE TABLE first (n int)");
  write("0002_second.sql", "CREATE TABLE second (n int)");
  const env = { ...process.env, MILLWRIGHT_FAILPOINT: "migrate:applied@2" };
  const died = run(process.execPath, [REPLICA, database.url, directory], { env });
  await expect(died).rejects.toMatchObject({ signal: "SIGKILL" });
  expect(await tables()).toEqual(["first", "schema_migrations"]);
  expect(await migrateNow()).toEqual(["0002_second"]);
});

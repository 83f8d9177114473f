import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { NO_LIMITS } from "../../../src/kernel/access/scope.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { createToken, verifyToken } from "../../../src/store/access/tokens.ts";
import { MIGRATIONS_DIRECTORY, migrate } from "../../../src/store/postgres/migrate.ts";
import { createTestDatabase } from "../../support/database.ts";

test("an upgrade counts the age of tokens from itself, renames duplicates that work, and leaves all others alone", async () => {
  const database = await createTestDatabase({ empty: true });
  onTestFinished(database.drop);
  const directory = mkdtempSync(join(tmpdir(), "millwright-migrations-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  for (const file of readdirSync(MIGRATIONS_DIRECTORY).filter((name) => /^\d+_.*\.sql$/.test(name) && name < "0073"))
    cpSync(join(MIGRATIONS_DIRECTORY, file), join(directory, file));
  const { db } = database;
  await migrate(database.url, { log: silentLog, directory });
  await db.execute(`
    insert into tokens (id, name, roles, hash, created_at, created_by, expires_at, revoked_at, bound_to)
    select id, name, '{viewer}', sha256(id::bytea), now() - age::interval, by, now() + ends::interval, revoked, bound
      from (values
        ('0000000000000001', 'ci',   '400 days', 'pat', null,     null::timestamptz, null),
        ('0000000000000002', 'ci',   '300 days', 'pat', null,     null, null),
        ('0000000000000003', 'ci',   '500 days', 'pat', '-1 day', null, null),
        ('0000000000000004', 'ci',   '600 days', 'pat', null,     now(), null),
        ('0000000000000005', 'dev',  '400 days', 'dev', null,     null, null),
        ('0000000000000006', 'dev',  '300 days', 'dev', null,     null, null),
        ('0000000000000007', 'node', '300 days', 'n-1', null,     null, 'n-1'),
        ('0000000000000008', 'node', '200 days', 'n-1', null,     null, 'n-1')) t (id, name, age, by, ends, revoked, bound)`);
  await migrate(database.url, { log: silentLog });
  const rows = await db.query<{ name: string; young: boolean; ageless: boolean }>(
    "select name, aged_from > now() - interval '1 hour' as young, ageless from tokens order by id",
  );
  expect(rows.map(({ name }) => name)).toEqual(
    ["ci", "ci-0000000000000002", "ci", "ci", "dev", "dev", "node", "node"], // the third has ended, the fourth was revoked
  );
  expect(rows.every(({ young }) => young)).toBe(true);
  expect(rows.flatMap(({ ageless }, at) => (ageless ? [at] : []))).toEqual([4, 5]);
});

test("a replica that knows nothing of scopes finds no role in a token that has one", async () => {
  const { db, drop } = await createTestDatabase();
  onTestFinished(drop);
  const { id, token } = await createToken(db, {
    ...{ name: "ci", roles: ["admin"], createdBy: "test" },
    scope: { ...NO_LIMITS, methods: ["runs"] },
  });
  expect(await db.query("select roles from tokens where id = $1", [id])).toEqual([{ roles: [] }]);
  expect(await verifyToken(db, token, new Date())).toMatchObject({ roles: ["admin"], scope: { methods: ["runs"] } });
  const widened = db.execute("update tokens set roles = '{admin}' where id = $1", [id]);
  await expect(widened).rejects.toThrow("tokens_scoped_roles");
});

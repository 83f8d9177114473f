import { cp, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { root } from "../run-tool.ts";
import { findRewrittenMigrations, findTakingMigrations, landMigrations } from "./landed-migrations.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millwright-migrations-"));
  await cp(join(root, "migrations"), folder, { recursive: true });
});
afterEach(() => rm(folder, { recursive: true }));

const write = (name: string, sql: string) => writeFile(join(folder, name), sql);

test("the migrations that have landed are as they were, and new ones may come", async () => {
  expect(await findRewrittenMigrations(folder)).toEqual([]);
  await write("9000_new.sql", "select 1;");
  expect(await findRewrittenMigrations(folder)).toEqual([]);
});

test("one that landed keeps its number", async () => {
  await rename(join(folder, "0002_secrets.sql"), join(folder, "9000_secrets.sql"));
  expect(await findRewrittenMigrations(folder)).toEqual([
    expect.stringMatching(/^migrations\/0002_secrets\.sql .* gone/),
  ]);
});

test("one that landed keeps what it says", async () => {
  await write("0002_secrets.sql", "select 1;");
  expect(await findRewrittenMigrations(folder)).toEqual([expect.stringContaining("was changed")]);
});

test("a number of a migration that never landed is not used again", async () => {
  await write("0016_again.sql", "select 1;");
  expect(await findRewrittenMigrations(folder)).toEqual([expect.stringContaining("number 0016 must never be used")]);
});

test("a new one comes after all that have landed", async () => {
  await write("0061_late.sql", "select 1;");
  expect(await findRewrittenMigrations(folder)).toEqual([expect.stringContaining("0061_late.sql comes before 0062_")]);
});

test.each([
  "drop table machines;",
  "alter table machines\n  drop column serial;",
  "alter table machines rename to computers;",
  "alter table machines alter column serial set not null;",
  "alter table machines alter column serial type bytea;",
])("what takes something away is told: %s", async (sql) => {
  expect(await findTakingMigrations(folder)).toEqual([]);
  await write("9000_new.sql", `-- drops nothing\n${sql}`);
  expect(await findTakingMigrations(folder)).toEqual([expect.stringContaining("9000_new.sql: ")]);
  await write("9000_new.sql", `-- Ends earlier servers: nobody reads it since 0.3.\n${sql}`);
  expect(await findTakingMigrations(folder)).toEqual([]);
});

test("what adds, or allows more, is fine", async () => {
  await write(
    "9000_new.sql",
    "-- drop table x\nalter table runs drop constraint runs_x, add column altitude int; drop index runs_y;",
  );
  expect(await findTakingMigrations(folder)).toEqual([]);
});

test("what has come since counts once it has landed", async () => {
  await write("9000_new.sql", "select 1;");
  await landMigrations(folder);
  expect(await findRewrittenMigrations(folder)).toEqual([]);
  await write("9000_new.sql", "select 2;");
  expect(await findRewrittenMigrations(folder)).toEqual([expect.stringContaining("9000_new.sql")]);
});

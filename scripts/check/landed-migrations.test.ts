import { cp, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { root } from "../run-tool.ts";
import { findRewrittenMigrations, landMigrations } from "./landed-migrations.ts";

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

test("what has come since counts once it has landed", async () => {
  await write("9000_new.sql", "select 1;");
  await landMigrations(folder);
  expect(await findRewrittenMigrations(folder)).toEqual([]);
  await write("9000_new.sql", "select 2;");
  expect(await findRewrittenMigrations(folder)).toEqual([expect.stringContaining("9000_new.sql")]);
});

// @module-tag race
import { randomBytes } from "node:crypto";
import { appendFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { runSecretKeys } from "../../../src/engine/secret-keys.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { listSecretKeys, rotateSecretKey } from "../../../src/services/system/secret-keys.ts";
import { forgetHolder } from "../../../src/store/access/secret-keys.ts";
import { openSecretStore, type SecretStore } from "../../../src/store/access/secrets.ts";
import type { Database, Queryable } from "../../../src/store/postgres/database.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";

const caller = { name: "kim", roles: ["admin"], address: "192.0.2.1" } as const;
const place = "https://192.0.2.7 trust=pin";

let database: TestDatabase;
let scratch: string;
beforeEach(async () => {
  database = await createTestDatabase();
  scratch = mkdtempSync(join(tmpdir(), "millwright-keys-"));
});
afterEach(async () => {
  await database.drop();
  rmSync(scratch, { recursive: true });
});

const fileOf = (name: string) => join(scratch, name);
const newLine = () => `${randomBytes(32).toString("base64")}\n`;
const addKey = (line: string, ...names: string[]) => {
  for (const name of names) appendFileSync(fileOf(name), line);
};

/** A replica that has started, with a key file of its own. */
async function startReplica(name: string): Promise<SecretStore> {
  const secrets = openSecretStore({ keyFile: fileOf(name) });
  await secrets.checkKeys(database.db);
  await secrets.followKeys(database.db, name);
  return secrets;
}

async function startTwo() {
  const one = await startReplica("one");
  writeFileSync(fileOf("two"), readFileSync(fileOf("one")), { mode: 0o600 });
  return { one, two: await startReplica("two") };
}

const depsOf = (secrets: SecretStore) => ({ db: database.db, secrets, stores: allStores, maxFindByIds: 100 });
const rotate = (secrets: SecretStore, keyId = "") => rotateSecretKey(depsOf(secrets), caller, keyId);
const keysOf = async (secrets: SecretStore) => (await listSecretKeys(depsOf(secrets))).keys;
const encryptAll = async (secrets: SecretStore) =>
  (await secrets.encryptAgain(database.db, { after: "", most: 1_000 })).done;

test("a new key is the current one only once every replica has it, and then on all at once", async () => {
  const { db } = database;
  const { one, two } = await startTwo();
  // No transaction: what the key was when it was asked first says nothing of the next time.
  const bare: Queryable = { query: db.query.bind(db), execute: db.execute.bind(db) } as Queryable;
  await two.put(bare, "b/secret", "hunter3");
  addKey(newLine(), "one");
  await one.followKeys(db, "one");
  await expect(rotate(one)).rejects.toMatchObject({
    kind: "failed_precondition",
    message: expect.stringContaining("is in the key file of 1 of 2 replicas"),
  });

  writeFileSync(fileOf("two"), readFileSync(fileOf("one")), { mode: 0o600 });
  await two.followKeys(db, "two");
  const { key, changed } = await rotate(one);
  expect(changed).toBe(true);
  // The other one has not looked since, and encrypts with it all the same.
  await two.put(db, "a/secret", "hunter2");
  await two.put(bare, "b/secret", "hunter3");
  expect(await db.query("select key_id from secrets")).toEqual([{ key_id: key.id }, { key_id: key.id }]);
  expect(await one.get(db, "a/secret")).toBe("hunter2");
  expect(await rotate(two)).toMatchObject({ changed: false, key: { id: key.id } });
  expect(await db.query("select type, actor from journal where kind = 'secret_key'")).toEqual([
    { type: "changed", actor: "kim" },
  ]);
});

test("a replica that is gone is not waited for, and one that starts without the current key does not start", async () => {
  const { db } = database;
  const { one, two } = await startTwo();
  const line = newLine();
  addKey(line, "one");
  await one.followKeys(db, "one");
  await forgetHolder(db, "two");
  const { key } = await rotate(one);
  await expect(startReplica("two")).rejects.toThrow(`encrypted with key ${key.id} now, which is not in`);
  // Nor does one that was paused meanwhile write what others cannot tell from what is current.
  await expect(two.put(db, "a/secret", "hunter2")).rejects.toThrow("which is not in");
  addKey(line, "two");
  await two.put(db, "a/secret", "hunter2");
  expect(await one.get(db, "a/secret")).toBe("hunter2");
});

test("what an earlier key encrypted is encrypted again, and that key is needed no more", async () => {
  const { db } = database;
  const { one, two } = await startTwo();
  await one.put(db, "a/secret", "hunter2");
  await one.putFor(db, { name: "bmc/1", place }, "root");
  await db.execute("update secrets set bound_pin = 'AA' where name = 'bmc/1'");
  const [first] = await keysOf(one);
  const lines = newLine();
  addKey(lines, "one", "two");
  await Promise.all([one.followKeys(db, "one"), two.followKeys(db, "two")]);
  const signature = one.sign("page token", "text");
  expect(await rotate(one)).toMatchObject({ changed: true, secretsLeft: 2 });
  expect((await keysOf(one))[0]).toMatchObject({ secrets: 2, removableAt: null });

  // Both replicas do it at once: each secret is written by one of them, or by both with the same value.
  await Promise.all([encryptAll(one), encryptAll(two)]);
  expect((await keysOf(one))[0]).toMatchObject({ id: first?.id, secrets: 0, removableAt: expect.any(Date) });
  writeFileSync(fileOf("one"), lines);
  const later = await startReplica("one");
  expect(await later.get(db, "a/secret")).toBe("hunter2");
  expect(await later.openFor(db, [{ name: "bmc/1", place }])).toEqual([{ plaintext: "root", pin: "AA" }]);
  expect(two.isSigned("page token", "text", signature)).toBe(true);
  expect(later.isSigned("page token", "text", signature)).toBe(false);
});

test("a value that is stored while its row is encrypted again is the one that stays", async () => {
  const { db } = database;
  const one = await startReplica("one");
  await one.put(db, "a/secret", "old");
  addKey(newLine(), "one");
  await one.followKeys(db, "one");
  await rotate(one);
  const stored: Database = {
    ...db,
    async transaction(work) {
      await one.put(db, "a/secret", "new");
      return db.transaction(work);
    },
  };
  expect((await one.encryptAgain(stored, { after: "", most: 10 })).done).toBe(0);
  expect(await one.get(db, "a/secret")).toBe("new");
});

test("one that cannot be read stays as it is, and holds up no other", async () => {
  const { db } = database;
  const one = await startReplica("one");
  for (const name of ["a", "b", "c"]) await one.put(db, name, name);
  await db.execute("update secrets set ciphertext = '' where name = 'b'");
  addKey(newLine(), "one");
  await one.followKeys(db, "one");
  await rotate(one);
  const first = await one.encryptAgain(db, { after: "", most: 2 });
  expect(first).toMatchObject({ done: 1, last: "b", unreadable: [{ message: expect.stringContaining("secret b") }] });
  expect(await one.encryptAgain(db, { after: "b", most: 2 })).toMatchObject({ done: 1, last: null });
  expect(await one.get(db, "c")).toBe("c");
});

test("the loop of a server reads the file, encrypts again, outlives a file that is gone, and takes its leave", async () => {
  const { db } = database;
  const one = await startReplica("one");
  await one.put(db, "a/secret", "hunter2");
  addKey(newLine(), "one");
  await one.followKeys(db, "one");
  await rotate(one);
  renameSync(fileOf("one"), fileOf("away"));
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const warned: string[] = [];
  const log = { ...silentLog, warn: (...line: unknown[]) => void warned.push(String(line.at(-1))) };
  const running = runSecretKeys({ db, log, secrets: one, replica: "one" }, stop.signal);
  await eventually(async () => warned.length > 0, { what: "the file is missed" });
  expect(warned).toEqual(["the secret keys could not be checked; trying again every 5 s"]);
  renameSync(fileOf("away"), fileOf("one"));
  await eventually(async () => (await keysOf(one))[0]?.secrets === 0, { what: "all are encrypted again" });
  stop.abort();
  await running;
  expect((await listSecretKeys(depsOf(one))).replicas).toBe(0);
});

// @module-tag race
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

const CANARY = "correct horse ß 🐎";

let database: TestDatabase;
let scratch: string;
let keyFile: string;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  await database.db.execute("DELETE FROM secrets");
  scratch = mkdtempSync(join(tmpdir(), "millwright-secrets-"));
  keyFile = join(scratch, "keys", "secret.key");
});
afterEach(() => rmSync(scratch, { recursive: true }));

const failure = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

test("gives back what was put, the newest of it, and nothing once removed", async () => {
  const { db } = database;
  const secrets = openSecretStore({ keyFile });
  await db.transaction((tx) => secrets.put(tx, "bmc/1", "first"));
  await db.transaction((tx) => secrets.put(tx, "bmc/1", CANARY));
  await secrets.put(db, "bmc/2", "");
  expect(await secrets.get(db, "bmc/1")).toBe(CANARY);
  expect(await secrets.getMany(db, ["bmc/1", "bmc/2", "bmc/3"])).toEqual(
    new Map([
      ["bmc/1", CANARY],
      ["bmc/2", ""],
    ]),
  );
  await db.transaction((tx) => secrets.remove(tx, "bmc/1"));
  expect(await secrets.get(db, "bmc/1")).toBeUndefined();
  expect(await secrets.getMany(db, [])).toEqual(new Map());
});

test("says which there are without opening any, and asks nobody about none", async () => {
  const { db } = database;
  const secrets = openSecretStore({ keyFile });
  await secrets.put(db, "bmc/1", CANARY);
  await secrets.put(db, "bmc/2", CANARY);
  await db.execute("UPDATE secrets SET ciphertext = '' WHERE name = 'bmc/2'");
  expect(await secrets.findNames(db, ["bmc/1", "bmc/2", "bmc/3"])).toEqual(new Set(["bmc/1", "bmc/2"]));
  const gone = { ...db, query: () => Promise.reject(new Error("nobody is to be asked")) };
  expect(await secrets.findNames(gone, [])).toEqual(new Set());
  await expect(secrets.findNames(gone, ["bmc/1"])).rejects.toThrow("nobody is to be asked");
});

test("the database holds nothing of the value, and equal values look different", async () => {
  const { db } = database;
  const secrets = openSecretStore({ keyFile });
  await secrets.put(db, "bmc/1", CANARY);
  await secrets.put(db, "bmc/2", CANARY);
  const rows = await db.query<{ nonce: Buffer; ciphertext: Buffer }>(
    "SELECT nonce, ciphertext FROM secrets ORDER BY name",
  );
  const [first, second] = rows;
  expect(first?.ciphertext.equals(second!.ciphertext)).toBe(false);
  expect(first?.nonce.equals(second!.nonce)).toBe(false);
  for (const { ciphertext } of rows) expect(ciphertext.includes(CANARY.slice(0, 7))).toBe(false);
});

test.each([
  [
    "a changed ciphertext",
    "UPDATE secrets SET ciphertext = set_byte(ciphertext, 0, get_byte(ciphertext, 0) # 1) WHERE name = 'bmc/1'",
  ],
  ["a changed nonce", "UPDATE secrets SET nonce = set_byte(nonce, 0, get_byte(nonce, 0) # 1) WHERE name = 'bmc/1'"],
  ["a cut-off ciphertext", "UPDATE secrets SET ciphertext = substring(ciphertext FOR 5) WHERE name = 'bmc/1'"],
  ["an empty ciphertext", "UPDATE secrets SET ciphertext = '' WHERE name = 'bmc/1'"],
  [
    "another secret's row",
    "UPDATE secrets a SET key_id = b.key_id, nonce = b.nonce, ciphertext = b.ciphertext FROM secrets b WHERE a.name = 'bmc/1' AND b.name = 'bmc/2'",
  ],
])("%s is noticed, and spoils no other secret", async (_what, tamper) => {
  const { db } = database;
  const secrets = openSecretStore({ keyFile });
  await secrets.put(db, "bmc/1", CANARY);
  await secrets.put(db, "bmc/2", "other");
  await db.execute(tamper);
  const error = await failure(secrets.get(db, "bmc/1"));
  expect(error).toMatchObject({ message: "secret bmc/1 is damaged: its row was changed outside Millwright" });
  expect(inspect(error, { depth: 9 })).not.toContain("other");
  const many = await secrets.getMany(db, ["bmc/1", "bmc/2"]);
  expect(many.get("bmc/2")).toBe("other");
  expect(many.get("bmc/1")).toBeInstanceOf(Error);
});

test("with another key file the error names the file, and not the value or any key", async () => {
  const { db } = database;
  await openSecretStore({ keyFile }).put(db, "bmc/1", CANARY);
  const otherFile = join(scratch, "other.key");
  const error = await failure(openSecretStore({ keyFile: otherFile }).get(db, "bmc/1"));
  expect(error).toMatchObject({
    kind: "failed_precondition",
    message: expect.stringContaining(`which is not in ${otherFile}`),
  });
  for (const secret of [CANARY, readFileSync(keyFile, "utf8").trim(), readFileSync(otherFile, "utf8").trim()]) {
    expect(inspect(error, { depth: 9 })).not.toContain(secret);
  }
});

test("a new key on top of the file encrypts from now on, and the old one still decrypts", async () => {
  const { db } = database;
  await openSecretStore({ keyFile }).put(db, "bmc/1", CANARY);
  const newKey = Buffer.alloc(32, 7).toString("base64");
  writeFileSync(keyFile, `${newKey}\n${readFileSync(keyFile, "utf8")}`);
  const rotated = openSecretStore({ keyFile });
  expect(await rotated.get(db, "bmc/1")).toBe(CANARY);
  await rotated.put(db, "bmc/1", CANARY);
  writeFileSync(keyFile, newKey);
  expect(await openSecretStore({ keyFile }).get(db, "bmc/1")).toBe(CANARY);
});

test("makes a key file for its owner alone and keeps to it", () => {
  openSecretStore({ keyFile });
  expect(statSync(keyFile).mode & 0o777).toBe(0o600);
  const key = readFileSync(keyFile, "utf8");
  openSecretStore({ keyFile });
  expect(readFileSync(keyFile, "utf8")).toBe(key);
});

test.each([0o640, 0o604, 0o660])("refuses a key file with mode %o", (mode) => {
  openSecretStore({ keyFile });
  chmodSync(keyFile, mode);
  expect(() => openSecretStore({ keyFile })).toThrow(`has mode 0${mode.toString(8)}`);
});

test.each([
  ["", "is empty"],
  ["c2hvcnQ=", "has no key of 32 bytes in base64 as number 1"],
  [`${Buffer.alloc(32).toString("base64")}\nrubbish`, "has no key of 32 bytes in base64 as number 2"],
])("refuses a key file with %j, and does not repeat it", (content, why) => {
  writeFileSync(join(scratch, "k"), content, { mode: 0o600 });
  expect(() => openSecretStore({ keyFile: join(scratch, "k") })).toThrow(
    `the secret key file ${join(scratch, "k")} ${why}`,
  );
});

test("a key file that is not this database's is refused before anything is encrypted with it", async () => {
  await database.db.execute("DELETE FROM secret_keys");
  const open = (name: string) => openSecretStore({ keyFile: join(scratch, name) });
  await open("first").checkKeys(database.db);
  await open("first").checkKeys(database.db); // the next start
  await expect(open("another").checkKeys(database.db)).rejects.toThrow(/does not hold the key/);

  const rotated = `${randomBytes(32).toString("base64")}\n${readFileSync(join(scratch, "first"), "utf8")}`;
  writeFileSync(join(scratch, "rotated"), rotated, { mode: 0o600 });
  await open("rotated").checkKeys(database.db);
});

test("of replicas that start at once with different keys on an empty database, one comes up", async () => {
  await database.db.execute("DELETE FROM secret_keys");
  const starts = Array.from({ length: 6 }, (_, index) =>
    openSecretStore({ keyFile: join(scratch, `key-${index}`) }).checkKeys(database.db),
  );
  const outcomes = await Promise.allSettled(starts);
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
});

test("replicas with the same key file know each other's signatures, also after a rotation, and nobody else's", () => {
  const [one, two] = [openSecretStore({ keyFile }), openSecretStore({ keyFile })];
  const signature = one.sign("page token", "a text");
  expect(two.isSigned("page token", "a text", signature)).toBe(true);
  expect(two.isSigned("page token", "another text", signature)).toBe(false);
  expect(two.isSigned("another use", "a text", signature)).toBe(false);
  for (const rubbish of ["", "x", `${signature}A`, signature.slice(1)])
    expect(two.isSigned("page token", "a text", rubbish)).toBe(false);
  writeFileSync(keyFile, `${randomBytes(32).toString("base64")}\n${readFileSync(keyFile, "utf8")}`);
  const rotated = openSecretStore({ keyFile });
  expect(rotated.isSigned("page token", "a text", signature)).toBe(true);
  expect(rotated.sign("page token", "a text")).not.toBe(signature);
  const stranger = openSecretStore({ keyFile: join(scratch, "other", "secret.key") });
  expect(stranger.isSigned("page token", "a text", signature)).toBe(false);
});

import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { appendFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { CredentialPlace } from "../../../src/capabilities/credential-place.ts";
import { AppError } from "../../../src/kernel/errors.ts";
import { createSecretReferences } from "../../../src/providers/references/references.ts";
import { openSecretStore } from "../../../src/store/access/secrets.ts";
import { type KvStore, startKvStore } from "../../support/credentials/kv-store.ts";
import { createTestDatabase } from "../../support/database.ts";

const CANARY = "canary-reference-9d1f";
const env = { MWSECRET_BMC: CANARY, MWSECRET_EMPTY: "", PATH: "/bin", DATABASE_URL: "postgres://kim:secret@db" };

let scratch: string;
let root: string;
let now: number;
const clock = { monotonic: () => now };
beforeEach(() => {
  now = 0;
  scratch = realpathSync(mkdtempSync(join(tmpdir(), "millwright-references-")));
  root = join(scratch, "root");
  mkdirSync(join(root, "below"), { recursive: true });
});
afterEach(() => rmSync(scratch, { recursive: true }));

const messageOf = (answer: string | AppError) => (answer instanceof AppError ? answer.message : `got ${answer}`);
const off = { fileRoots: [], envPrefix: "", vault: null };

test("nothing is read until the operator has said from where", async () => {
  writeFileSync(join(root, "bmc"), CANARY);
  const references = createSecretReferences(off, { clock, env });
  for (const reference of ["env:MWSECRET_BMC", `file:${join(root, "bmc")}`, "vault:secret/bmc#password", "https://x"]) {
    const answer = await references.resolve(reference);
    expect(messageOf(answer)).toMatch(/ are off$|is no reference$/);
    expect(messageOf(answer)).toContain(reference);
  }
});

describe("a variable", () => {
  const resolve = (name: string) =>
    createSecretReferences({ ...off, envPrefix: "MWSECRET_" }, { clock, env }).resolve(`env:${name}`);

  test("below the prefix is read", async () => expect(await resolve("MWSECRET_BMC")).toBe(CANARY));
  test.each([
    "DATABASE_URL",
    "PATH",
    "MWSECRET_",
    "MWSECRET_NONE",
    "MWSECRET_EMPTY",
    "",
    "MWSECRET_BMC ",
    "a=b",
    "MWSECRET_\0",
  ])("%j is not", async (name) => expect(await resolve(name)).toBeInstanceOf(AppError));
});

describe("a file", () => {
  const resolve = (path: string, roots = [root]) =>
    createSecretReferences({ ...off, fileRoots: roots }, { clock, env }).resolve(`file:${path}`);

  test("below a root is read, without the line break at its end", async () => {
    writeFileSync(join(root, "below", "bmc"), `${CANARY}\n`);
    expect(await resolve(join(root, "below", "bmc"))).toBe(CANARY);
  });

  test("is read below a root that is itself a link: that one the operator has made", async () => {
    writeFileSync(join(root, "bmc"), CANARY);
    symlinkSync(root, join(scratch, "link"));
    expect(await resolve(join(root, "bmc"), [join(scratch, "link")])).toBe(CANARY);
  });

  test.each([
    ["beside the root", (at: string) => join(at, "outside")],
    ["beside, with the name of the root in front", (at: string) => join(at, "root-2")],
    ["over ..", (at: string) => `${at}/root/below/../../outside`],
    ["over .", (at: string) => `${at}/root/./inside`],
    ["over //", (at: string) => `${at}/root//inside`],
    ["relative", () => "root/inside"],
    ["the root itself", (at: string) => join(at, "root")],
    ["a directory", (at: string) => join(at, "root", "below")],
    ["a link", (at: string) => join(at, "root", "link")],
    ["a link to a file below", (at: string) => join(at, "root", "inner-link")],
    ["below a link to a directory", (at: string) => join(at, "root", "way-out", "outside")],
    ["a pipe", (at: string) => join(at, "root", "pipe")],
    ["what is not there", (at: string) => join(at, "root", "missing")],
    ["an empty one", (at: string) => join(at, "root", "empty")],
    ["a long one", (at: string) => join(at, "root", "long")],
    ["with a NUL", (at: string) => `${at}/root/inside\0`],
    ["a device", () => "/dev/zero"],
    ["of the process", () => "/proc/self/environ"],
  ])("is not read: %s", async (_, path) => {
    for (const name of ["outside", "root-2", "root/inside"]) writeFileSync(join(scratch, name), CANARY);
    writeFileSync(join(root, "empty"), "\n");
    writeFileSync(join(root, "long"), CANARY.repeat(20_000));
    symlinkSync(join(scratch, "outside"), join(root, "link"));
    symlinkSync(join(root, "inside"), join(root, "inner-link"));
    symlinkSync(scratch, join(root, "way-out"));
    execFileSync("mkfifo", [join(root, "pipe")]);
    const answer = await resolve(path(scratch));
    expect(answer).toBeInstanceOf(AppError);
    expect(messageOf(answer)).not.toContain(CANARY);
  });

  test("that is changed is read again after some seconds, and an error is not kept for longer", async () => {
    const references = createSecretReferences({ ...off, fileRoots: [root] }, { clock, env });
    const reference = `file:${join(root, "bmc")}`;
    expect(await references.resolve(reference)).toBeInstanceOf(AppError);
    writeFileSync(join(root, "bmc"), CANARY);
    expect(await references.resolve(reference)).toBeInstanceOf(AppError);
    now = 10_000;
    expect(await references.resolve(reference)).toBe(CANARY);
    writeFileSync(join(root, "bmc"), "another");
    expect(await references.resolve(reference)).toBe(CANARY);
    now = 20_000;
    expect(await references.resolve(reference)).toBe("another");
  });
});

describe("a Vault", () => {
  let store: KvStore;
  beforeEach(async () => {
    store = await startKvStore();
    store.secrets.set("secret/bmc/one", { password: CANARY, number: 7, nothing: "" });
    store.secrets.set("secret/other", { password: CANARY });
    store.tokens.add("root-token");
    writeFileSync(join(scratch, "token"), "root-token\n");
    writeFileSync(join(scratch, "secret-id"), "secret-id-1\n");
  });
  afterEach(() => store.close());

  const withToken = () => ({ tokenFile: join(scratch, "token"), roleId: null, secretIdFile: null });
  const withRole = () => ({ tokenFile: null, roleId: "millwright", secretIdFile: join(scratch, "secret-id") });
  const vaultWith = (signIn: ReturnType<typeof withToken> | ReturnType<typeof withRole>, paths = ["secret/bmc"]) =>
    createSecretReferences({ ...off, vault: { url: store.url, paths, ...signIn } }, { clock, env });

  test("is read with a token, and asked once for many who want the same", async () => {
    const references = vaultWith(withToken());
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => references.resolve("vault:secret/bmc/one#password")),
    );
    expect(new Set(answers)).toEqual(new Set([CANARY]));
    expect(store.calls).toEqual(["GET /v1/secret/data/bmc/one"]);
  });

  test("is read as an AppRole, which signs in again when its token is revoked", async () => {
    const references = vaultWith(withRole());
    expect(await references.resolve("vault:secret/bmc/one#password")).toBe(CANARY);
    now = 11_000;
    expect(await references.resolve("vault:secret/bmc/one#password")).toBe(CANARY);
    expect(store.calls.filter((call) => call.includes("login"))).toHaveLength(1);
    store.tokens.clear();
    now = 22_000;
    expect(await references.resolve("vault:secret/bmc/one#password")).toBe(CANARY);
    expect(store.calls.filter((call) => call.includes("login"))).toHaveLength(2);
  });

  test.each([
    "vault:secret/other#password",
    "vault:secret/bmc-2/one#password",
    "vault:secret/bmc/../other#password",
    "vault:secret/bmc/one",
    "vault:secret/bmc/one#number",
    "vault:secret/bmc/one#nothing",
    "vault:secret/bmc/one#missing",
    "vault:secret/bmc/missing#password",
    "vault:secret/bmc/one?version=1#password",
    "vault:secret/bmc/%2e%2e/other#password",
    "vault:../sys/raw#password",
    "vault:#",
  ])("answers nothing for %s", async (reference) => {
    const answer = await vaultWith(withToken()).resolve(reference);
    expect(answer).toBeInstanceOf(AppError);
    expect(messageOf(answer)).not.toContain(CANARY);
    expect(store.calls.filter((call) => !call.startsWith("GET /v1/secret/data/bmc/"))).toEqual([]);
  });

  test("that refuses, hangs or is away is an error with what to do, and never with a token", async () => {
    store.tokens.clear();
    expect(messageOf(await vaultWith(withToken()).resolve("vault:secret/bmc/one#password"))).toContain(
      "does not let this server",
    );
    writeFileSync(join(scratch, "secret-id"), "wrong-secret-id");
    const refused = messageOf(await vaultWith(withRole()).resolve("vault:secret/bmc/one#password"));
    expect(refused).toContain("refused the AppRole");
    expect(refused).not.toContain("wrong-secret-id");
    store.hangs = true;
    expect(messageOf(await vaultWith(withToken()).resolve("vault:secret/bmc/one#password"))).toContain(
      "did not answer in time",
    );
    await store.close();
    expect(messageOf(await vaultWith(withToken()).resolve("vault:secret/bmc/one#password"))).toContain(
      "cannot be reached",
    );
  });
});

describe("the secret store", () => {
  test("follows the reference of a credential, keeps it over a change of key, and follows none in a document of a job", async () => {
    const database = await createTestDatabase();
    const { db } = database;
    try {
      writeFileSync(join(root, "bmc"), CANARY);
      const keyFile = join(scratch, "key");
      const references = createSecretReferences({ ...off, fileRoots: [root] }, { clock, env });
      const secrets = openSecretStore({ keyFile, references });
      await secrets.checkKeys(db);
      const mark = `\0ref:file:${join(root, "bmc")}`;
      await secrets.put(db, "bmc/one", JSON.stringify({ username: "root", password: mark }));
      await secrets.put(db, "cluster/one", mark);
      await secrets.put(db, "job-document/one/params", mark);
      const account = JSON.stringify({ username: mark, password: "own" });
      await secrets.put(db, "bmc/odd", account);
      const escaped = JSON.stringify({ password: mark });
      await secrets.put(db, "cluster/odd", escaped);
      const read = async () => [
        ...(await secrets.getMany(db, ["bmc/one", "bmc/odd", "cluster/one", "cluster/odd", "job-document/one/params"])),
      ];
      const expected = [
        ["bmc/one", JSON.stringify({ username: "root", password: CANARY })],
        ["cluster/one", CANARY],
        ["job-document/one/params", mark],
        ["bmc/odd", account],
        ["cluster/odd", escaped],
      ];
      expect((await read()).sort()).toEqual(expected.sort());
      const bound = { name: "bmc/bound", place: "https://192.0.2.7:443 pin" as CredentialPlace };
      await secrets.putFor(db, bound, JSON.stringify({ username: "root", password: mark }));
      const [opened] = await secrets.openFor(db, [bound]);
      expect(opened).toMatchObject({ plaintext: JSON.stringify({ username: "root", password: CANARY }) });
      appendFileSync(keyFile, `${randomBytes(32).toString("base64")}\n`);
      await secrets.followKeys(db, "one");
      await db.execute("update secret_keys set is_current = not is_current");
      expect((await secrets.encryptAgain(db, { after: "", most: 100 })).done).toBe(6);
      expect((await read()).sort()).toEqual(expected.sort());
      // Where the server follows none, nobody is sent the reference itself.
      expect(await openSecretStore({ keyFile }).getMany(db, ["bmc/one"])).toEqual(
        new Map([["bmc/one", expect.objectContaining({ kind: "failed_precondition" })]]),
      );
    } finally {
      await database.drop();
    }
  });
});

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { expect, onTestFinished, test } from "vitest";
import { SecretKeyService } from "../../../../contract/millwright/v1/secret_key_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const at = (text: string) => timestampFromDate(new Date(text));

test("the list says what each key is used for, and when it can go", async () => {
  const now = new Date("2026-01-02T00:00:00Z");
  const since = at("2025-01-01T00:00:00Z");
  const { out } = await runAgainst(
    (router) =>
      router.service(SecretKeyService, {
        listSecretKeys: () => ({
          replicas: 2,
          keys: [
            { id: "gone", currentSince: since },
            { id: "old", currentSince: since, holders: 2, removableAt: at("2026-01-01T00:00:00Z") },
            { id: "used", currentSince: since, holders: 2, secrets: 3 },
            { id: "now", currentSince: since, holders: 2, secrets: 40, current: true },
            { id: "next", holders: 1 },
          ],
        }),
      }),
    "secrets keys",
    { now },
  );
  expect(out).toMatch(/gone +in no file +0 +0 of 2/);
  expect(out).toMatch(/old +can be removed +0 +2 of 2/);
  expect(out).toMatch(/used +decrypts +3 +2 of 2/);
  expect(out).toMatch(/now +encrypts +40 +2 of 2/);
  expect(out).toMatch(/next +new +0 +1 of 2/);
});

test("a rotation waits until the others' secrets are encrypted again", async () => {
  const left = [5, 2, 0];
  const { code, out } = await runAgainst(
    (router) =>
      router.service(SecretKeyService, {
        rotateSecretKey: ({ keyId }) => ({ key: { id: `${keyId}next` }, changed: true, secretsLeft: 9 }),
        listSecretKeys: () => ({
          keys: [
            { id: "old", secrets: left.shift() ?? 0 },
            { id: "next", secrets: 9 },
          ],
        }),
      }),
    "secrets rotate-key --wait",
  );
  expect([code, left]).toEqual([0, []]);
  expect(out).toContain("Key next encrypts from now on. All secrets are encrypted with it.");
});

test("a new key is a line below those that are there, in a file that only its owner reaches", async () => {
  const directory = mkdtempSync(join(tmpdir(), "millwright-key-file-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const add = (name: string) => runAgainst(() => {}, ["secrets", "new-key", join(directory, name)]);
  const first = Buffer.alloc(32, 7).toString("base64");
  writeFileSync(join(directory, "keys"), first, { mode: 0o600 });
  expect((await add("keys")).code).toBe(0);
  const [line, added, end] = readFileSync(join(directory, "keys"), "utf8").split("\n");
  expect([line, Buffer.from(added ?? "", "base64").length, end]).toEqual([first, 32, ""]);

  writeFileSync(join(directory, "open"), `${first}\n`, { mode: 0o644 });
  expect(await add("open")).toMatchObject({ code: 2, err: expect.stringContaining("chmod 600") });
  expect(await add("none")).toMatchObject({ code: 2, err: expect.stringContaining("ENOENT") });
  expect(() => readFileSync(join(directory, "none"))).toThrow("ENOENT");
});

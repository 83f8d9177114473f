import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { unprivilegedAccount, unreachableDirectory } from "./account.ts";

const ROOT = "root:x:0:0:root:/root:/bin/bash";
const NOBODY = "nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin";
const POSTGRES = "postgres:x:101:104::/var/lib/postgresql:/bin/bash";

test.each([
  [
    "prefers the database's own user to a shared one",
    [ROOT, NOBODY, POSTGRES],
    { name: "postgres", uid: 101, gid: 104 },
  ],
  ["takes a shared one when there is no other", [ROOT, NOBODY, ""], { name: "nobody", uid: 65534, gid: 65533 }],
  ["never takes one that is root under another name", [ROOT, "postgres:x:0:0::/:/bin/sh"], undefined],
  ["skips lines that are no accounts", ["# nobody", "nobody", "+::::::"], undefined],
])("%s", (_behaviour, lines, account) => {
  expect(unprivilegedAccount(lines.join("\n"))).toEqual(account);
});

test("finds the outermost directory that an account may not pass through", () => {
  const scratch = mkdtempSync(join(tmpdir(), "millwright-account-"));
  onTestFinished(() => rmSync(scratch, { recursive: true }));
  const inner = join(scratch, "outer", "inner");
  mkdirSync(inner, { recursive: true });
  const { uid, gid } = statSync(inner);
  const modes = (outer: number, innermost: number) => {
    chmodSync(scratch, 0o755);
    chmodSync(inner, innermost);
    chmodSync(join(scratch, "outer"), outer);
  };
  const stranger = { name: "stranger", uid: uid + 1, gid: gid + 1 };
  const colleague = { name: "colleague", uid: uid + 1, gid };

  modes(0o711, 0o755);
  expect(unreachableDirectory(inner, stranger)).toBeUndefined();
  modes(0o710, 0o700);
  expect(unreachableDirectory(inner, stranger)).toBe(join(scratch, "outer"));
  expect(unreachableDirectory(inner, colleague)).toBe(inner);
  expect(unreachableDirectory(inner, { name: "owner", uid, gid })).toBeUndefined();
});

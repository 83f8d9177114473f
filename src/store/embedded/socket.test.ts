import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { chooseSocketDirectory, ensurePrivateDirectory, socketPath } from "./socket.ts";

const account = { name: "nobody", uid: 65534, gid: 65534 };
const longPath = `/${"d".repeat(110)}`;

let scratch: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "millwright-socket-"));
});
afterEach(() => rmSync(scratch, { recursive: true }));

test("the socket is in the data directory as long as its path fits, to the byte", () => {
  const longest = `/${"d".repeat(107 - "//socket/.s.PGSQL.5432".length)}`;
  expect(chooseSocketDirectory(longest, undefined)).toBe(`${longest}/socket`);
  expect(Buffer.byteLength(socketPath(`${longest}/socket`))).toBe(107);
  expect(chooseSocketDirectory(`${longest}d`, undefined)).not.toContain(longest);
  expect(chooseSocketDirectory(longest.replace("d", "ü"), undefined)).not.toContain("ü");
});

test("a short place is the same for the same data directory, and differs for another", () => {
  const choose = (dataDir: string) => chooseSocketDirectory(dataDir, undefined, "/run/user/1000");
  expect(choose(longPath)).toMatch(/^\/run\/user\/1000\/millwright-[0-9a-f]{16}$/);
  expect(choose(longPath)).toBe(choose(longPath));
  expect(choose(longPath)).not.toBe(choose(`${longPath}2`));
});

test("root's runtime directory is not used, since the database's user cannot enter it", () => {
  expect(chooseSocketDirectory(longPath, account, "/run/user/0")).not.toContain("/run/user/0");
});

test("a directory that is there and ours is closed to others", () => {
  const directory = join(scratch, "socket");
  mkdirSync(directory, { mode: 0o755 });
  ensurePrivateDirectory(directory, undefined);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
});

test("a link in its place is refused, wherever it leads", () => {
  const directory = join(scratch, "socket");
  symlinkSync(scratch, directory);
  expect(() => ensurePrivateDirectory(directory, undefined)).toThrow(
    `${directory} is needed for the database's socket, but belongs to somebody else`,
  );
});

import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { type CpioEntry, writeCpio } from "./cpio.ts";

const ENTRIES: readonly CpioEntry[] = [
  { path: "init", type: "file", permissions: 0o755, data: Buffer.from("#!/bin/sh\n") },
  { path: "dev/console", type: "character_device", permissions: 0o600, device: [5, 1] },
  // Lengths that need each of the paddings.
  ...[0, 1, 2, 3, 4, 5].map(
    (length): CpioEntry => ({
      path: `lib/${"x".repeat(length + 1)}`,
      type: "file",
      permissions: 0o644,
      data: Buffer.alloc(length, "a"),
    }),
  ),
];

/** An archive as its format is described: a header of 13 hexadecimal numbers, a name, and data, each padded to four bytes. */
function readCpio(archive: Buffer) {
  const entries: { name: string; mode: number; data: string; device: number[] }[] = [];
  for (let at = 0; at < archive.length; ) {
    expect(archive.toString("latin1", at, at + 6)).toBe("070701");
    const field = (index: number) =>
      Number.parseInt(archive.toString("latin1", at + 6 + index * 8, at + 14 + index * 8), 16);
    const [mode, size, nameSize] = [field(1), field(6), field(11)];
    const name = archive.toString("latin1", at + 110, at + 110 + nameSize - 1);
    const start = Math.ceil((at + 110 + nameSize) / 4) * 4;
    if (name === "TRAILER!!!") return entries;
    entries.push({ name, mode, data: archive.toString("latin1", start, start + size), device: [field(9), field(10)] });
    at = Math.ceil((start + size) / 4) * 4;
  }
  throw new Error("it has no trailer");
}

describe("an archive", () => {
  test("holds each entry, and before it each directory above it once", () => {
    const read = readCpio(writeCpio(ENTRIES));
    expect(read.map(({ name }) => name)).toEqual([
      "init",
      "dev",
      "dev/console",
      "lib",
      ...ENTRIES.slice(2).map(({ path }) => path),
    ]);
    expect(read.map(({ mode }) => mode).slice(0, 4)).toEqual([0o100755, 0o40755, 0o20600, 0o40755]);
    expect(read.find(({ name }) => name === "dev/console")?.device).toEqual([5, 1]);
    expect(read.slice(-6).map(({ data }) => data)).toEqual(["", "a", "aa", "aaa", "aaaa", "aaaaa"]);
  });

  test("is the same whenever it is made", () => {
    expect(writeCpio(ENTRIES).equals(writeCpio(ENTRIES))).toBe(true);
  });

  test.each(["/init", "lib//x", "../x", "lib/./x", ""])("has no entry outside of itself: %j", (path) => {
    expect(() => writeCpio([{ path, type: "file", permissions: 0o644 }])).toThrow("no path inside");
  });

  test("is read by cpio", ({ skip }) => {
    const { status, stdout, error } = spawnSync("cpio", ["--list", "--quiet"], {
      input: writeCpio(ENTRIES),
      encoding: "utf8",
    });
    if (error !== undefined) skip("needs Debian's cpio");
    expect(status).toBe(0);
    expect(stdout.trimEnd().split("\n")).toEqual([
      "init",
      "dev",
      "dev/console",
      "lib",
      ...ENTRIES.slice(2).map(({ path }) => path),
    ]);
  });
});

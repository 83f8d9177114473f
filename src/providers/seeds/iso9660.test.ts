import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { writeVolume } from "./iso9660.ts";

const AT = new Date("2026-01-31T12:34:56Z");
const file = (name: string, text: string) => ({ name, content: Buffer.from(text) });

/** Reads a Joliet volume back by the offsets of the standard, and by nothing of what wrote it. */
function readVolume(volume: Buffer): Record<string, string> {
  const joliet = volume.subarray(17 * 2_048, 18 * 2_048);
  expect([joliet[0], joliet.toString("latin1", 1, 6), joliet.toString("latin1", 88, 91)]).toEqual([2, "CD001", "%/E"]);
  const root = joliet.readUInt32LE(156 + 2) * 2_048;
  const files: Record<string, string> = {};
  for (let at = root; volume[at] !== 0; at += volume[at] ?? 0) {
    const nameLength = volume[at + 32] ?? 0;
    const name = Buffer.from(volume.subarray(at + 33, at + 33 + nameLength));
    if (nameLength === 1) continue;
    const start = volume.readUInt32LE(at + 2) * 2_048;
    expect(volume.readUInt32BE(at + 6) * 2_048).toBe(start);
    files[name.swap16().toString("utf16le")] = volume.toString("utf8", start, start + volume.readUInt32LE(at + 10));
  }
  return files;
}

describe("a volume", () => {
  const files = [file("user-data", "#cloud-config\n{}\n"), file("meta-data", "x".repeat(5_000)), file("empty", "")];

  test("has its label, and its files under their names", () => {
    const volume = writeVolume("CIDATA", files, AT);
    expect(volume.toString("latin1", 16 * 2_048 + 40, 16 * 2_048 + 72)).toBe("CIDATA".padEnd(32));
    expect(readVolume(volume)).toEqual({
      "user-data": "#cloud-config\n{}\n",
      "meta-data": "x".repeat(5_000),
      empty: "",
    });
    expect(volume.length).toBe(volume.readUInt32LE(16 * 2_048 + 80) * 2_048);
  });

  test("is the same, byte for byte, whoever writes it and in whichever order", () => {
    expect(writeVolume("CIDATA", files.toReversed(), AT).equals(writeVolume("CIDATA", files, AT))).toBe(true);
  });

  test("with a label that is none is refused", () => {
    expect(() => writeVolume("ci data", files, AT)).toThrow("no label");
  });

  const isoinfo = spawnSync("isoinfo", ["-version"]).status === 0;
  test.skipIf(!isoinfo)("is read by a program that is not ours", () => {
    const directory = mkdtempSync(join(tmpdir(), "millwright-test-volume-"));
    try {
      const path = join(directory, "seed.iso");
      writeFileSync(path, writeVolume("CIDATA", files, AT));
      const ask = (...args: string[]) => spawnSync("isoinfo", ["-i", path, ...args], { encoding: "utf8" }).stdout;
      expect(ask("-d")).toContain("Volume id: CIDATA");
      expect(ask("-J", "-f").trim().split("\n").toSorted()).toEqual(["/empty", "/meta-data", "/user-data"]);
      expect(ask("-J", "-x", "/user-data")).toBe("#cloud-config\n{}\n");
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

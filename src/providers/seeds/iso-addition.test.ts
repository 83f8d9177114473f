import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import type { SeedFile } from "../../capabilities/seeds/seed.ts";
import { addToVolume } from "./iso-addition.ts";
import { type IsoOutline, readOutline } from "./iso-outline.ts";
import { writeVolume } from "./iso9660.ts";

const AT = new Date("2026-01-31T12:34:56Z");
const directory = mkdtempSync(join(tmpdir(), "millwright-test-iso-"));
afterAll(() => rmSync(directory, { recursive: true }));

const has = (program: string) => spawnSync(program, ["-version"]).status === 0;
const file = (name: string, text: string): SeedFile => ({ name, content: Buffer.from(text) });
const SEED = [file("user-data", "#cloud-config\n{}\n"), file("meta-data", "x".repeat(5_000)), file("empty", "")];

const outlineOf = (iso: Buffer): Promise<IsoOutline> =>
  readOutline(async (offset, length) => {
    if (offset + length > iso.length) throw new Error("read behind the end");
    return iso.subarray(offset, offset + length);
  }, iso.length);

async function withSeed(iso: Buffer, files: readonly SeedFile[] = SEED): Promise<Buffer> {
  const { bytes, patches, tail } = addToVolume(await outlineOf(iso), files, AT);
  const whole = Buffer.alloc(bytes);
  iso.copy(whole);
  for (const patch of patches) patch.bytes.copy(whole, patch.at);
  tail.bytes.copy(whole, tail.at);
  return whole;
}

let made = 0;
/** An ISO that boots under BIOS, by a program that is not ours. */
function buildIso(program: "genisoimage" | "xorriso", names: readonly string[], ...flags: string[]): Buffer {
  const tree = join(directory, `tree-${++made}`);
  mkdirSync(join(tree, "boot"), { recursive: true });
  writeFileSync(join(tree, "boot", "loader.bin"), Buffer.alloc(4_096, 7));
  for (const name of names) writeFileSync(join(tree, name), `text of ${name}`);
  const iso = join(directory, `${made}.iso`);
  const boot = ["-b", "boot/loader.bin", "-c", "boot/boot.cat", "-no-emul-boot", "-boot-load-size", "4"];
  const before = program === "xorriso" ? ["-as", "mkisofs"] : [];
  const { status, stderr } = spawnSync(
    program,
    [...before, "-quiet", "-o", iso, "-V", "ORDINARY", ...flags, ...boot, "-boot-info-table", tree],
    { encoding: "utf8" },
  );
  if (status !== 0) throw new Error(stderr);
  return readFileSync(iso);
}

const kept = (iso: Buffer): string => {
  const path = join(directory, `seeded-${++made}.iso`);
  writeFileSync(path, iso);
  return path;
};
const isoinfo = (path: string, ...args: string[]) =>
  spawnSync("isoinfo", ["-i", path, ...args], { encoding: "latin1" }).stdout;
/** `files` in the root, and the text of one, as xorriso reads them: it prefers Rock Ridge. */
function extracted(path: string, name: string): string {
  const out = join(directory, `out-${++made}`);
  spawnSync("xorriso", ["-osirrox", "on", "-indev", path, "-extract", `/${name}`, out]);
  return readFileSync(out, "utf8");
}
const listed = (path: string): string[] =>
  spawnSync("xorriso", ["-indev", path, "-ls", "/"], { encoding: "utf8" })
    .stdout.trim()
    .split("\n")
    .map((line) => line.replace(/^'(.*)'$/, "$1"))
    .toSorted();

describe.skipIf(!has("genisoimage") || !has("xorriso"))("a seed in an ISO that is not ours", () => {
  test.each([
    ["Rock Ridge and Joliet", "genisoimage", ["-R", "-J"]],
    ["Rock Ridge alone", "genisoimage", ["-R"]],
    ["Joliet alone", "genisoimage", ["-J"]],
    ["long names beside them", "genisoimage", ["-R", "-J", "-iso-level", "4"]],
    ["Rock Ridge of another writer", "xorriso", ["-R", "-J"]],
  ] as const)("is found by programs that are not ours: %s", async (_, program, flags) => {
    const iso = buildIso(program, ["readme.txt", "vmlinuz"], ...flags);
    const path = kept(await withSeed(iso));
    const names = ["boot", "empty", "meta-data", "readme.txt", "user-data", "vmlinuz"];
    const isJoliet = (flags as readonly string[]).includes("-J");
    if ((flags as readonly string[]).includes("-R")) {
      expect(listed(path)).toEqual(names);
      expect(extracted(path, "user-data")).toBe("#cloud-config\n{}\n");
      expect(extracted(path, "readme.txt")).toBe("text of readme.txt");
      expect(isoinfo(path, "-R", "-x", "/meta-data")).toBe("x".repeat(5_000));
    }
    if (isJoliet) {
      expect(isoinfo(path, "-J", "-x", "/user-data")).toBe("#cloud-config\n{}\n");
      expect(isoinfo(path, "-J", "-x", "/boot/loader.bin")).toHaveLength(4_096);
    }
    expect(isoinfo(path, "-d")).toContain("Volume id: ORDINARY");
    // By the path tables, which some firmware reads in place of directories.
    expect(isoinfo(path, "-p").trim()).toContain(
      `${readFileSync(path)
        .readUInt32LE(16 * 2_048 + 158)
        .toString(16)}`,
    );
  });

  test("still boots: the boot catalogue, and all that it leads to, are where they were", async () => {
    const iso = buildIso("genisoimage", ["vmlinuz"], "-R", "-J");
    const path = kept(await withSeed(iso));
    const boot = (at: string) =>
      spawnSync("xorriso", ["-indev", at, "-report_el_torito", "plain"], { encoding: "utf8" }).stdout;
    expect(boot(path)).toContain("El Torito boot img");
    expect(boot(path)).toBe(boot(kept(iso)));
  });

  test("takes the place of a file of the same name, and of no other", async () => {
    const iso = buildIso("genisoimage", ["user-data", "user_data", "user-data.txt"], "-R", "-J");
    const path = kept(await withSeed(iso));
    const names = ["boot", "empty", "meta-data", "user-data", "user-data.txt", "user_data"];
    expect(listed(path)).toEqual(names);
    expect(extracted(path, "user-data")).toBe("#cloud-config\n{}\n");
    expect(extracted(path, "user_data")).toBe("text of user_data");
    expect(isoinfo(path, "-J", "-x", "/user-data")).toBe("#cloud-config\n{}\n");
  });

  test("leaves a root of any size whole, whatever its names are", async () => {
    const name = fc.stringMatching(/^[a-z][a-z0-9._-]{0,30}[a-z0-9]$/);
    const names = fc.uniqueArray(name, { minLength: 1, maxLength: 120, selector: (each) => each });
    await fc.assert(
      fc.asyncProperty(names, fc.uint8Array({ maxLength: 6_000 }), async (some, content) => {
        const iso = buildIso("xorriso", some, "-R", "-J", "-joliet-long");
        const seed = [{ name: "ks.cfg", content: Buffer.from(content) }];
        const seeded = await withSeed(iso, seed);
        expect((await withSeed(iso, seed)).equals(seeded)).toBe(true);
        const path = kept(seeded);
        expect(listed(path)).toEqual([...new Set([...some, "ks.cfg", "boot"])].toSorted());
        expect(Buffer.from(isoinfo(path, "-R", "-x", "/ks.cfg"), "latin1").equals(Buffer.from(content))).toBe(true);
        expect(Buffer.from(isoinfo(path, "-J", "-x", "/ks.cfg"), "latin1").equals(Buffer.from(content))).toBe(true);
      }),
      { numRuns: 12, seed: 7 },
    );
  }, 60_000);
});

describe("an ISO", () => {
  const plain = writeVolume("ORDINARY", [file("vmlinuz", "kernel")], AT);
  const changed = (change: (iso: Buffer) => void): Buffer => {
    const iso = Buffer.from(plain);
    change(iso);
    return iso;
  };

  test.each([
    ["that is none", Buffer.alloc(100_000), "is not an ISO 9660 volume"],
    ["that is a text", Buffer.from("hello"), "is too short"],
    ["that was cut off", plain.subarray(0, plain.length - 2_048), "cut off"],
    ["with a checksum in it", changed((iso) => iso.write("ISO MD5SUM = 0", 16 * 2_048 + 883)), "checksum in itself"],
    ["with UDF beside it", changed((iso) => iso.write("NSR02", 19 * 2_048 + 1)), "UDF"],
    ["without long names", changed((iso) => void iso.writeUInt8(0, 17 * 2_048)), "neither Rock Ridge nor Joliet"],
    ["whose root is elsewhere", changed((iso) => iso.writeUInt32LE(9_999_999, 16 * 2_048 + 158)), "root directory"],
    ["whose root has no end", changed((iso) => iso.writeUInt32LE(4_000_000_000, 16 * 2_048 + 166)), "root directory"],
    [
      "with a Joliet name of an odd length",
      changed((iso) => void iso.writeUInt8(13, 24 * 2_048 + 100)),
      "half characters",
    ],
    ["whose root is noise", changed((iso) => iso.fill(0x55, 23 * 2_048, 24 * 2_048)), "root directory"],
  ])("%s is refused by name", async (_, iso, why) => {
    await expect(outlineOf(iso)).rejects.toThrow(why);
  });

  test("that leaves no numbers for the sectors of a seed is refused as too long", async () => {
    const sparse = async (offset: number, length: number) => {
      const read = Buffer.alloc(length);
      plain.copy(read, 0, offset);
      return read;
    };
    const most = 2 ** 43 - 2 ** 30;
    for (const bytes of [most + 1, 2 ** 43 - 1, 2 ** 43, 2 ** 53])
      await expect(readOutline(sparse, bytes)).rejects.toThrow("is too long for an ISO 9660 volume");
    expect(addToVolume(await readOutline(sparse, most), SEED, AT).bytes).toBeGreaterThan(most);
  });

  test("that is noise in any place is refused or read, and nothing else happens", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(plain.length - 1), fc.uint8Array({ minLength: 1, maxLength: 64 }), async (at, noise) => {
        const iso = changed((each) => void Buffer.from(noise).copy(each, at));
        const found = await outlineOf(iso).catch((error: unknown) => error);
        if (found instanceof Error) expect(found.name).toBe("UnfitIso");
        // Who may begin is not refused when its BMC reads.
        else addToVolume(found as IsoOutline, SEED, AT);
      }),
      { numRuns: 2_000 },
    );
  });

  test("that was replaced by another shows it, though it is as long", async () => {
    const other = writeVolume("ORDINARY", [file("vmlinux", "kernel")], AT);
    expect(other.length).toBe(plain.length);
    expect((await outlineOf(other)).digest).not.toBe((await outlineOf(plain)).digest);
  });
});

import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { IsoSeen, SeededMedium } from "../../capabilities/seeds/seeded-media.ts";
import { writeVolume } from "./iso9660.ts";
import { createSeededMedia } from "./seeded-media.ts";

const AT = new Date("2026-01-31T12:34:56Z");
const file = (name: string, content: Buffer | string) => ({ name, content: Buffer.from(content) });
/** Longer than what is read in blocks, and no whole number of sectors. */
const ISO = Buffer.concat([
  writeVolume("ORDINARY", [file("big", Buffer.alloc(6_000_000, "image"))], AT),
  Buffer.alloc(77),
]);
const SEED = [file("user-data", "#cloud-config\n{}\n")];
const digestOf = (bytes: Buffer) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

/** A plain web server with one file, which may be replaced, and as unhelpful as it is told to be. */
let web: Server;
let location: string;
let iso: Buffer;
let version: string | undefined;
let asked: string[];
let odd: "" | "no_ranges" | "cuts" | "more" | "busy" | "gone";
/** What it keeps back until it is told otherwise; null: nothing. */
let held: (() => void)[] | null;
let onAsked: () => void;
beforeEach(async () => {
  [iso, version, asked, odd, held] = [ISO, '"1"', [], "", null];
  onAsked = () => undefined;
  web = createServer((request, response) => {
    const [, from = "", to = ""] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
    asked.push(request.headers.range ?? "");
    if (odd === "busy" || odd === "gone") return response.writeHead(odd === "busy" ? 503 : 404).end("no such thing");
    if (version !== undefined) response.setHeader("etag", version);
    if (from === "" || odd === "no_ranges") return response.end(iso);
    const end = to === "" ? iso.length - 1 : Math.min(Number(to), iso.length - 1);
    const part = iso.subarray(Number(from), end + 1);
    response.writeHead(206, { "content-range": `bytes ${from}-${end}/${iso.length}` });
    if (odd === "cuts" && part.length > 1_000) return response.write(part.subarray(0, 1_000), () => response.destroy());
    if (held !== null) held.push(() => response.end(part));
    else response.end(odd === "more" ? Buffer.concat([part, part]) : part);
    return onAsked();
  });
  web.listen(0, "127.0.0.1");
  await once(web, "listening");
  location = `http://127.0.0.1:${(web.address() as AddressInfo).port}/a.iso?secret=1`;
});
afterEach(() => {
  web.closeAllConnections();
  web.close();
});

const signal = new AbortController().signal;
const media = () => createSeededMedia({ mayReach: () => true });

async function readRange(medium: SeededMedium, start: number, end: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of medium.read({ start, end }, signal)) parts.push(part);
  return Buffer.concat(parts);
}
const whole = (medium: SeededMedium) => readRange(medium, 0, medium.bytes - 1);
const orderOf = (seen: IsoSeen) => ({ location, seen, digest: digestOf(ISO), files: SEED, at: AT });

describe("an image with a seed in it", () => {
  test("is the same in pieces as in one, and by whoever reads it", async () => {
    const first = media();
    const seen = await first.examine(location, signal);
    const medium = await first.open(orderOf(seen));
    const all = await whole(medium);
    expect(all.length).toBe(medium.bytes);
    expect(all.includes("#cloud-config\n{}\n")).toBe(true);
    const other = await media().open(orderOf(seen));
    const range = fc.tuple(fc.nat(all.length - 1), fc.nat(all.length - 1));
    await fc.assert(
      fc.asyncProperty(range, async ([a, b]) => {
        const [start, end] = [Math.min(a, b), Math.max(a, b)];
        expect((await readRange(other, start, end)).equals(all.subarray(start, end + 1))).toBe(true);
      }),
      { numRuns: 40 },
    );
    // Around each border: of what is ours, of the image's end, and of the blocks.
    for (const at of [16 * 2_048, 18 * 2_048, 23 * 2_048 + 2, 1_048_576, ISO.length, all.length - 2_048])
      expect((await readRange(other, at - 3, at + 3)).equals(all.subarray(at - 3, at + 4))).toBe(true);
  });

  test("costs its server few requests, however small the pieces are that a BMC reads", async () => {
    const served = media();
    const medium = await served.open(orderOf(await served.examine(location, signal)));
    asked = [];
    for (let at = 0; at < 3 * 1_048_576; at += 65_536) await readRange(medium, at, at + 65_535);
    expect(asked.length).toBeLessThanOrEqual(3);
    asked = [];
    await whole(medium);
    expect(asked).toHaveLength(1);
  });

  test("costs its server a few requests at a time, and none for readers that left", async () => {
    iso = Buffer.concat([ISO, Buffer.alloc(12 * 1_048_576)]);
    const served = media();
    const medium = await served.open(orderOf(await served.examine(location, signal)));
    [asked, held] = [[], []];
    const leave = new AbortController();
    const eight = new Promise<void>((resolve) => (onAsked = () => asked.length === 8 && resolve()));
    const readers = Array.from({ length: 14 }, async (_, block) => {
      const start = block * 1_048_576 + 100;
      for await (const part of medium.read({ start, end: start }, leave.signal)) expect(part).toHaveLength(1);
    });
    await eight;
    leave.abort(new Error("has left"));
    // Nothing was answered yet.
    for (const end of await Promise.allSettled(readers)) expect(end).toMatchObject({ reason: new Error("has left") });
    const answers = held;
    held = null;
    for (const answer of answers) answer();
    expect(await readRange(medium, 13 * 1_048_576, 13 * 1_048_576 + 5)).toHaveLength(6);
    expect(asked).toHaveLength(9);
    // What was fetched for somebody who left is there for the next.
    expect(await readRange(medium, 100, 105)).toHaveLength(6);
    expect(asked).toHaveLength(9);
  });

  test("is refused before it is begun where nothing can be added to it", async () => {
    iso = Buffer.from(ISO);
    iso[24 * 2_048 + 68 + 32] = 5;
    await expect(media().examine(location, signal)).rejects.toMatchObject({ code: "image_unfit" });
  });

  test.each([
    ["is longer", () => (iso = Buffer.concat([ISO, Buffer.alloc(2_048)])), "instead of"],
    ["is another version", () => (version = '"2"'), "another version"],
  ])("is not mixed with an image that %s by then", async (_, replace, why) => {
    const served = media();
    const medium = await served.open(orderOf(await served.examine(location, signal)));
    replace();
    await expect(readRange(medium, 0, 100)).rejects.toMatchObject({ code: "image_unfit" });
    await expect(whole(medium)).rejects.toThrow(why);
    await expect(readRange(medium, 0, 100)).rejects.not.toThrow("secret");
  });

  test("is refused to a process that finds other directories, though the server says nothing of versions", async () => {
    version = undefined;
    const seen = await media().examine(location, signal);
    iso = Buffer.concat([writeVolume("ORDINARY", [file("bog", Buffer.alloc(6_000_000))], AT), Buffer.alloc(77)]);
    await expect(media().open(orderOf(seen))).rejects.toThrow("another one than it was");
  });

  test("that has another digest never comes to its end", async () => {
    version = undefined;
    const served = media();
    const seen = await served.examine(location, signal);
    iso = Buffer.from(ISO);
    iso.write("changed", 3_000_000);
    const medium = await served.open(orderOf(seen));
    let length = 0;
    const reading = async () => {
      for await (const part of medium.read({ start: 0, end: medium.bytes - 1 }, signal)) length += part.length;
    };
    await expect(reading()).rejects.toThrow(/has the digest sha256:.* instead of/);
    expect(length).toBeLessThan(medium.bytes);
  });

  test.each([
    ["no_ranges", "answers no ranges", "image_unfit"],
    ["more", "more than it was asked for", "image_unfit"],
    ["cuts", "", "unreachable"],
    ["busy", "answers 503", "busy"],
    ["gone", "no such file", "not_found_there"],
  ] as const)("says what is wrong with its server: %s", async (how, why, code) => {
    odd = how;
    const failure = await media()
      .examine(location, signal)
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ code, message: expect.stringContaining(why) });
    expect(String(failure)).not.toContain("secret");
  });

  test("goes on after its server was away", async () => {
    const served = media();
    const medium = await served.open(orderOf(await served.examine(location, signal)));
    odd = "busy";
    await expect(readRange(medium, 0, 10)).rejects.toMatchObject({ code: "busy" });
    odd = "";
    expect(await readRange(medium, 0, 10)).toHaveLength(11);
  });

  test("is read from networks that the operator listed, and from no other", async () => {
    const guarded = createSeededMedia({ mayReach: () => false });
    await expect(guarded.examine(location, signal)).rejects.toMatchObject({
      code: "address_not_allowed",
      message: expect.stringContaining("install.image_networks"),
    });
    expect(asked).toEqual([]);
  });
});

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EventScanner } from "./event-scanner.ts";

const scanAll = (chunks: readonly Uint8Array[]) => {
  const scanner = new EventScanner();
  const sum = { lines: 0, events: 0 };
  for (const chunk of chunks) {
    const { lines, events } = scanner.scan(chunk);
    sum.lines += lines;
    sum.events += events;
  }
  return sum;
};
const scan = (text: string) => scanAll([Buffer.from(text)]);

/** The rules of the standard, written down plainly: the whole text at once. */
function byTheBook(text: string) {
  const ended = text
    .replace(/^\uFEFF/, "")
    .replace(/\r\n/g, "\n")
    .replace(/\r/g, "\n")
    .split("\n")
    .slice(0, -1);
  let [events, data] = [0, false];
  for (const line of ended) {
    if (line === "") {
      if (data) events += 1;
      data = false;
    } else if (line === "data" || line.startsWith("data:")) data = true;
  }
  return { lines: ended.length, events };
}

/** Cut into pieces of these lengths, the rest as one. */
function cut(bytes: Uint8Array, lengths: readonly number[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let from = 0;
  for (const length of lengths) {
    pieces.push(bytes.subarray(from, from + length));
    from += length;
  }
  return [...pieces, bytes.subarray(from)];
}

describe("the scanner of events", () => {
  test.each([
    ["one event", "data: {}\n\n", 1],
    ["data over several lines", "id: 2\ndata:{\ndata: 1\ndata:}\n\n", 1],
    ["lines that end with CR and LF", "data: a\r\n\r\ndata: b\r\n\r\n", 2],
    ["lines that end with CR", "data: a\r\rdata: b\r\r", 2],
    ["data without a value", "data\n\n", 1],
    ["keep-alive comments", ": stream keep-alive\n\n:\n\n", 0],
    ["an event without data", "event: ping\nid: 4\n\n", 0],
    ["another name that begins so", "database: a\n\ndat: b\n\n", 0],
    ["an event that is not over", "data: a\n", 0],
    ["a byte order mark", "\uFEFFdata: a\n\n", 1],
    ["a byte order mark later on", "\n\uFEFFdata: a\n\n", 0],
    ["nothing", "", 0],
  ])("counts the events in %s", (_, text, events) => {
    expect(scan(text).events).toBe(events);
  });

  test("takes half a byte order mark for text", () => {
    expect(scanAll([Buffer.from([0xef, 0xbb]), Buffer.from("data: a\n\n")]).events).toBe(0);
  });

  test("counts what the standard says, in whatever pieces the stream arrives", () => {
    const piece = fc.constantFrom(
      "data",
      ":",
      " ",
      "\n",
      "\r",
      "\r\n",
      "\n\n",
      "id: 1",
      "{}",
      "dat",
      "x",
      ": k",
      "\uFEFF",
    );
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 60 }),
        fc.array(fc.nat({ max: 9 }), { maxLength: 40 }),
        (parts, lengths) => {
          const text = parts.join("");
          const counted = scanAll(cut(Buffer.from(text), lengths));
          // A CR at the very end ends its line at once; only what follows tells whether a LF belongs to it.
          expect(counted).toEqual(byTheBook(text));
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test("keeps nothing, whatever is sent", () => {
    const scanner = new EventScanner();
    const chunk = (seed: number) =>
      fc.sample(fc.uint8Array({ minLength: 65_536, maxLength: 65_536 }), { seed, numRuns: 1 })[0];
    const kinds = [
      Buffer.alloc(65_536, "x"),
      Buffer.alloc(65_536, "data: "),
      Buffer.alloc(65_536, "data: {}\n"),
      chunk(1),
    ];
    const before = memoryInUse();
    // 16 MiB of each: lines without end, events without end, noise.
    for (const bytes of kinds) for (let sent = 0; sent < 256; sent += 1) scanner.scan(bytes as Uint8Array);
    expect(memoryInUse() - before).toBeLessThan(4 * 1_024 * 1_024);
  });
});

/** Without what nobody can reach any more: how much of that there is depends on when it was last collected. */
function memoryInUse(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

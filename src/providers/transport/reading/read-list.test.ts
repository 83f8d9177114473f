import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { type ListReading, NotAList, readList } from "./read-list.ts";
import { TooLarge } from "./read-text.ts";

const all: ListReading = { keep: (element) => element, largestElement: 1_000, most: 100 };
const read = (chunks: readonly (Buffer | string)[], more: Partial<ListReading> = {}, largest = 10_000) =>
  readList(Readable.from(chunks.map((chunk) => Buffer.from(chunk))) as IncomingMessage, { ...all, ...more, largest });

const TRICKY = [
  { name: 'quoted " and \\ and [ ] { } , :', nested: [{ of: [[], {}] }, "]"] },
  "a, text with ] and } and \\",
  -12.5e3,
  [],
  {},
  { ключ: "日本 🐟", "esc\\": '\\"' },
  true,
];

test("a list is the same wherever its bytes are cut", async () => {
  for (const text of [JSON.stringify(TRICKY), JSON.stringify(TRICKY, null, 2), ` \n${JSON.stringify(TRICKY)} \r\n`]) {
    const bytes = Buffer.from(text);
    for (let at = 0; at <= bytes.length; at += 1)
      expect(await read([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(TRICKY);
    expect(await read([...bytes].map((byte) => Buffer.from([byte])))).toEqual(TRICKY);
  }
  expect(await read(["[]"])).toEqual([]);
});

test("only what is kept is there afterwards", async () => {
  expect(await read(["[1,2,3,4]"], { keep: (n) => ((n as number) % 2 === 0 ? n : undefined), most: 2 })).toEqual([
    2, 4,
  ]);
});

test.each(["", " ", '{"a":1}', '"[1]"', "<html>", "[1", '["a', "[{}", "[1]2", "[x]", "[1 2]", "[}]", "[{]}]"])(
  "%s is no list",
  async (text) => {
    await expect(read([text])).rejects.toThrow(NotAList);
  },
);

test.each<[string, Partial<ListReading>, number]>([
  ["an element that is too large", { largestElement: 5 }, 10_000],
  ["too many elements", { most: 1 }, 10_000],
  ["too many bytes", {}, 12],
])("%s is refused", async (_what, more, largest) => {
  await expect(read(['["abcdef",', '"b"]'], more, largest)).rejects.toThrow(TooLarge);
});

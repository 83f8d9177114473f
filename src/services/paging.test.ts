import { expect, test } from "vitest";
import { AppError } from "../kernel/errors.ts";
import { checkPageSize, cutPage, pageTokenOf, parsePageToken } from "./paging.ts";

const query = { rack: "a", types: ["x"] };

test("a token leads back to the key after which the next page begins", () => {
  expect(parsePageToken(pageTokenOf(query, ["name", "id"]), query, 2)).toEqual(["name", "id"]);
  expect(parsePageToken("", query, 2)).toBeUndefined();
});

test.each([
  ["rubbish", "rubbish"],
  ["JSON that is no token", Buffer.from('{"a":1}').toString("base64url")],
  ["a token with too few words", pageTokenOf(query, ["one"])],
  ["a token with NUL in it", pageTokenOf(query, ["name", "a\0"])],
  ["a token with a word that no key is as long as", pageTokenOf(query, ["name", "x".repeat(1_025)])],
  ["a token of megabytes", "A".repeat(1_000_000)],
  ["a token of another query", pageTokenOf({ ...query, rack: "b" }, ["name", "id"])],
])("%s is refused by its name", (_what, token) => {
  const read = () => parsePageToken(token, query, 2);
  expect(read).toThrow(AppError);
  expect(read).toThrow(/^page_token: /);
});

test("a key that cannot be one is refused by the token's name", () => {
  const read = () => parsePageToken(pageTokenOf(query, ["1.2"]), query, 1, ([word]) => word === "1.2.3");
  expect(read).toThrow(/^page_token: /);
});

test("0 takes the default size; negative, broken and too large sizes are refused", () => {
  expect([0, 1, 1_000].map(checkPageSize)).toEqual([100, 1, 1_000]);
  for (const size of [-1, 1_001, 1.5]) expect(() => checkPageSize(size)).toThrow(/^page_size: /);
});

test("there is a next page only when there is one row too many", () => {
  const key = (row: number) => [String(row)];
  expect(cutPage([1, 2], 2, query, key)).toEqual({ items: [1, 2], nextPageToken: "" });
  const { items, nextPageToken } = cutPage([1, 2, 3], 2, query, key);
  expect(items).toEqual([1, 2]);
  expect(parsePageToken(nextPageToken, query, 1)).toEqual(["2"]);
});

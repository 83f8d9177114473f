import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { AppError } from "../../kernel/errors.ts";
import type { Signer } from "../../store/access/secrets.ts";
import * as paging from "./paging.ts";

const { checkPageSize } = paging;
const signerWith = (key: string): Signer => {
  const sign = (purpose: string, text: string) =>
    createHmac("sha256", key).update(`${purpose}/${text}`).digest("base64url");
  return { sign, isSigned: (purpose, text, signature) => sign(purpose, text) === signature };
};
const ours = signerWith("ours");

type Without<F> = F extends (signer: Signer, ...rest: infer R) => infer A ? (...rest: R) => A : never;
const pageTokenOf: Without<typeof paging.pageTokenOf> = (...rest) => paging.pageTokenOf(ours, ...rest);
const parsePageToken: Without<typeof paging.parsePageToken> = (...rest) => paging.parsePageToken(ours, ...rest);

const query = { rack: "a", types: ["x"] };

/** The words changed, all else as it was. */
function retold(token: string): string {
  const [content = "", signature = ""] = token.split(".");
  const told = JSON.parse(Buffer.from(content, "base64url").toString()) as { after: string[] };
  return `${Buffer.from(JSON.stringify({ ...told, after: ["other", "id"] })).toString("base64url")}.${signature}`;
}

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
  ["a token that somebody else signed", paging.pageTokenOf(signerWith("theirs"), query, ["name", "id"])],
  ["a token without its signature", pageTokenOf(query, ["name", "id"]).replace(/\..*/, "")],
  ["a token with another content under its signature", retold(pageTokenOf(query, ["name", "id"]))],
  ["a token with something behind it", `${pageTokenOf(query, ["name", "id"])}.x`],
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
  expect(paging.cutPage(ours, [1, 2], 2, query, key)).toEqual({ items: [1, 2], nextPageToken: "" });
  const { items, nextPageToken } = paging.cutPage(ours, [1, 2, 3], 2, query, key);
  expect(items).toEqual([1, 2]);
  expect(parsePageToken(nextPageToken, query, 1)).toEqual(["2"]);
});

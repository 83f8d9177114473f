import { expect, test } from "vitest";
import { judgeLinks } from "./links.ts";

const other = { path: "docs/guide.md", text: "# Guide\n\n## `db.url` & more\n\n## Twice\n\n## Twice\n" };
const judge = (text: string) => {
  const page = { path: "docs/reference/page.md", text };
  const there = new Set(["docs/guide.md", "docs/reference/page.md", "docs/lifecycles/", "LICENSE"]);
  return judgeLinks(page, { pages: [page, other], exists: async (path) => there.has(path) });
};

test.each([
  ["a page beside", "[x](page.md)"],
  ["a page above", "[x](../guide.md)"],
  ["a folder", "[x](../lifecycles/)"],
  ["a file that is no page", "[x](../../LICENSE)"],
  ["a heading", "[x](../guide.md#dburl--more)"],
  ["the second heading of its name", "[x](../guide.md#twice-1)"],
  ["a heading of the page itself", "# Here\n\n[x](#here)"],
  ["somewhere else", "[x](https://nowhere.example/page.md) [y](mailto:a@b.example)"],
  ["nothing, in code", "`[x](gone.md)`\n\n```md\n[x](gone.md)\n```\n"],
])("a link to %s is fine", async (_what, text) => {
  expect(await judge(text)).toEqual([]);
});

test("a link to a file that is not there is a fault, with its line", async () => {
  expect(await judge("fine\n\n| [`x`](gone.md) | [y](../../../out.md) |")).toEqual([
    "docs/reference/page.md:3: gone.md leads to no file",
    "docs/reference/page.md:3: ../../../out.md leads to no file",
  ]);
});

test("a link to a heading that is not there is a fault", async () => {
  expect(await judge("[x](../guide.md#chapter) [y](#nowhere)")).toEqual([
    "docs/reference/page.md:1: ../guide.md#chapter leads to no heading of docs/guide.md",
    "docs/reference/page.md:1: #nowhere leads to no heading of docs/reference/page.md",
  ]);
});

test("what stands after a code block is read again", async () => {
  expect(await judge("```sh\nls\n```\n\n[x](gone.md)")).toEqual(["docs/reference/page.md:5: gone.md leads to no file"]);
});

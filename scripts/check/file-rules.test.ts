import { describe, expect, test } from "vitest";
import { findCrowdedFolders, judgeLength, judgeName } from "./file-rules.ts";
import { compareTrees } from "./generated-files.ts";

describe("a name", () => {
  test.each([
    "src/kernel/utils.ts",
    "src/api/string-utils.ts",
    "src/helpers/time.ts",
    "test/support/test-helper.ts",
    "src/api/types.ts",
    "src/api/types.test.ts",
    "src/common/ids.ts",
    "simulator/misc.ts",
  ])("that says nothing is refused: %s", (path) => {
    expect(judgeName({ path, text: "" })).toMatch(/^.*: "\w+" says nothing/);
  });

  test.each([
    "src/kernel/lifecycle-types.test.ts",
    "src/kernel/duration.ts",
    "contract/common/common_pb.js",
    "src/cli/commands/commonplace.ts",
  ])("that says something is kept: %s", (path) => {
    expect(judgeName({ path, text: "" })).toBeUndefined();
  });
});

describe("a file", () => {
  const lines = (count: number) => "x\n".repeat(count);

  test("of 500 lines is kept, and one of 501 is refused", () => {
    expect(judgeLength({ path: "src/a.ts", text: lines(500) })).toBeUndefined();
    expect(judgeLength({ path: "src/a.ts", text: lines(501) })).toBe(
      "src/a.ts: 501 lines, and 500 are the most; split it",
    );
  });

  test.each(["src/a.test.ts", "test/e2e/a.ts", "contract/forge/forge_pb.d.ts"])(
    "that is a test or generated may be longer: %s",
    (path) => {
      expect(judgeLength({ path, text: lines(2_000) })).toBeUndefined();
    },
  );
});

test("a folder may hold 25 files of its own, and those below it do not count", () => {
  const filled = (folder: string, count: number) =>
    Array.from({ length: count }, (_, at) => ({ path: `${folder}/${at}.ts`, text: "" }));
  expect(findCrowdedFolders([...filled("src/a", 25), ...filled("src/a/b", 25), ...filled("contract/c", 26)])).toEqual(
    [],
  );
  expect(findCrowdedFolders([...filled("src/a", 26), ...filled("src/b", 1)])).toEqual([
    "src/a/: 26 files, and 25 are the most; give what belongs together a folder",
  ]);
});

test("generated files that changed, are missing or have no source are told, each by name", () => {
  const present = new Map([
    ["same.md", "a"],
    ["changed.md", "b"],
    ["orphan.md", "c"],
  ]);
  const wanted = new Map([
    ["same.md", "a"],
    ["changed.md", "B"],
    ["new.md", "d"],
  ]);
  expect(compareTrees("docs/reference", present, wanted)).toEqual([
    "docs/reference/changed.md is out of date: run `npm run generate`",
    "docs/reference/new.md is missing: run `npm run generate`",
    "docs/reference/orphan.md has no source any more: run `npm run generate`",
  ]);
});

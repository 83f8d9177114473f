// @module-tag race
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { listFailPoints } from "../../support/fail-points.ts";

test("the fail points are found in the sources, however they are written, and not in tests", () => {
  const directory = mkdtempSync(join(tmpdir(), "millwright-fail-points-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  mkdirSync(join(directory, "deep"));
  writeFileSync(
    join(directory, "deep", "a.ts"),
    `failPoint("b:2"); if (x) failPoint(\n  'a:1',\n); failPoint("b:2"); failPoint("c:3", things);`,
  );
  writeFileSync(join(directory, "a.test.ts"), `failPoint("only:in:a:test");`);
  expect(listFailPoints(directory)).toEqual(["a:1", "b:2", "c:3"]);
});

test("the store has fail points", () => {
  expect(listFailPoints()).toContain("transitions:locked");
});

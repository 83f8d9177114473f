import { expect, test } from "vitest";
import { problemOf } from "./results.ts";

test.each([
  [{ devices: [{ wiped: true }, { wiped: true }] }, true],
  [{ devices: [{ wiped: true }, { wiped: false }] }, false],
  [{ devices: [null] }, false],
  [{ devices: [] }, false],
  [{}, false],
])("that storage was wiped is proven by %j: %j", (result, isProven) => {
  expect(problemOf("node.cleanup_storage", result) === undefined).toBe(isProven);
});

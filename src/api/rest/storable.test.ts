import fc from "fast-check";
import { expect, test } from "vitest";
import { findUnstorable } from "./storable.ts";

test.each([
  ["\0", []],
  [{ a: ["fine", { b: "x\0y" }] }, ["a", 1, "b"]],
  [{ a: "\udc00" }, ["a"]],
  [{ "\ud800": 1 }, []],
])("%j cannot be kept, and it says where", (value, at) => {
  expect(findUnstorable(value)).toMatchObject({ at });
});

test("whatever is nested too deeply is found without going deep itself", () => {
  let deep: unknown = 1;
  for (let level = 0; level < 1_000_000; level += 1) deep = [deep];
  expect(findUnstorable({ config: deep })?.why).toContain("32 levels");
});

test("everything else passes as it is", () => {
  expect(findUnstorable(undefined)).toBeUndefined();
  const text = fc.string({ unit: "grapheme" }).filter((each) => each.isWellFormed() && !each.includes("\0"));
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), text, (value, extra) => {
      fc.pre(!JSON.stringify(value).includes("\\u"));
      expect(findUnstorable({ value, extra })).toBeUndefined();
    }),
  );
});

import { expect, test } from "vitest";
import { storableText, toJsonText } from "./json-text.ts";

test("ordinary values are written as they are", () => {
  const value = { name: "Gerät 🛠 \\u0000 as text", list: [1, null, true], nested: { empty: {} } };
  expect(JSON.parse(toJsonText(value))).toEqual(value);
});

test("a NUL and half a surrogate pair become the replacement character, in names too, at any depth", () => {
  const value = { "a\0": ["x\0y", { deep: "\ud83d" }], whole: "🛠" };
  expect(JSON.parse(toJsonText(value))).toEqual({ "a\ufffd": ["x\ufffdy", { deep: "\ufffd" }], whole: "🛠" });
  expect(storableText("x\0\ude00")).toBe("x\ufffd\ufffd");
});

import { expect, test } from "vitest";
import { isPrintable, printableMessage } from "./printable.ts";

test.each(["", "pat", "Zoë Ångström", "MAINT-123: 電源", "https://tracker/1?x=y#z", "👩 at work"])(
  "%j can be shown",
  (text) => {
    expect(isPrintable(text)).toBe(true);
  },
);

test.each([
  ["a line feed", "a\nb"],
  ["an escape sequence", "\u001b[2J"],
  ["NUL", "a\0"],
  ["a C1 control", "a\u0085b"],
  ["a right-to-left override", "a\u202eb"],
  ["a directional isolate", "a\u2066b"],
  ["a zero-width space", "ad\u200bmin"],
  ["a line separator", "a\u2028b"],
  ["a paragraph separator", "a\u2029b"],
  ["half of a surrogate pair", "a\ud83d"],
])("text with %s cannot", (_, text) => {
  expect(isPrintable(text)).toBe(false);
});

test("in a message each such character is replaced, but for line breaks and tabs", () => {
  expect(printableMessage("\u001b[2Ja\u202eb\u2066c\ud83d")).toBe("\ufffd[2Ja\ufffdb\ufffdc\ufffd");
  expect(printableMessage("one\r\n\ttwo 👩 電源\n")).toBe("one\n\ttwo 👩 電源\n");
});

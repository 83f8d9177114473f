import fc from "fast-check";
import { expect, test } from "vitest";
import { printable, shorten, tableOf } from "./table.ts";

const cells = (...texts: string[]) => texts.map((text) => ({ text, tone: undefined }));
const plain = { color: false, width: undefined };

test("columns are padded to their widest cell, and nothing is a dash", () => {
  expect(tableOf(["ID", "NAME"], [cells("long-one", "a"), cells("b", "")], plain)).toBe(
    "ID        NAME\nlong-one  a\nb         -\n",
  );
});

test("the last column ends at the edge of the terminal", () => {
  const text = tableOf(["ID", "REASON"], [cells("a", "a reason that is too long for this terminal")], {
    color: false,
    width: 20,
  });
  expect(text.split("\n")[1]).toBe("a   a reason that i…");
});

test("colours do not shift columns", () => {
  const row = [{ text: "on", tone: "good" as const }, ...cells("x")];
  expect(tableOf(["POWER", "N"], [row], { color: true, width: undefined })).toContain("\u001b[32mon\u001b[0m     x");
});

test("no text from outside can steer the terminal", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 0x2ff })), (codes) => {
      expect(printable(String.fromCharCode(...codes))).not.toMatch(/\p{Cc}/u);
    }),
  );
  expect(printable("\u001b[2Jgone")).toBe("\\x1b[2Jgone");
});

test("a shortened text is never longer than asked", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "grapheme" }),
      fc.integer({ min: 1, max: 20 }),
      (text, width) => [...shorten(text, width)].length <= width,
    ),
  );
});

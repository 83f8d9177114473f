import fc from "fast-check";
import { expect, test } from "vitest";
import { renderList } from "./output.ts";
import { printable, printableLines } from "./printable.ts";

test("no text from outside can steer the terminal", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 0xffff })), (codes) => {
      const text = String.fromCharCode(...codes);
      expect(printable(text)).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
      expect(printableLines(text).replace(/[\n\t]/g, "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
    }),
  );
});

test("what could is shown as an escape", () => {
  expect(printable("\u001b[2Jgone\u0007")).toBe("\\x1b[2Jgone\\x07");
  expect(printable("a\u202eb\u2066c\u{e0001}\ud800")).toBe("a\\u202eb\\u2066c\\u{e0001}\\ud800");
  expect(printable("👩\u200d🔧 a\u200db")).toBe("👩\u200d🔧 a\\u200db");
  expect(printable("two\nlines 電源 👩")).toBe("two lines 電源 👩");
  expect(printableLines("two\n\tlines\r")).toBe("two\n\tlines\\x0d");
});

test.each(["table", "csv"] as const)("%s shows it so", async (format) => {
  const columns = [{ title: "NAME", cell: (item: string) => item }];
  const style = { format, color: false, width: undefined, now: new Date(0) };
  const items = ["\u001b[31mred\u0007", "a\u202eb"];
  const shown = await renderList({ items, columns, json: (item) => item }, style);
  expect(shown.split("\n").slice(1)).toEqual(["\\x1b[31mred\\x07", "a\\u202eb", ""]);
});

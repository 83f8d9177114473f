import fc from "fast-check";
import { expect, test } from "vitest";
import { csvOf } from "./csv.ts";

/** A reader of RFC 4180, written from the other side. */
function readCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let field = "";
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? "";
    if (quoted) {
      if (character !== '"') field += character;
      else if (text[at + 1] === '"') {
        field += '"';
        at++;
      } else quoted = false;
    } else if (character === '"') quoted = true;
    else if (character === ",") {
      row.push(field);
      field = "";
    } else if (character === "\n") {
      rows.push([...row, field]);
      row = [];
      field = "";
    } else field += character;
  }
  return rows;
}

/** What a spreadsheet would calculate gets an apostrophe. */
const shown = (text: string) =>
  /^[\s'"]*[=+\-@]/.test(text) && !/^[+-]?(\d+(\.\d+)?)?$/.test(text) ? `'${text}` : text;

const field = fc.oneof(fc.string(), fc.stringMatching(/^[",\r\n a]{0,6}$/));

test("whatever is written as csv is read back as it was", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 0, max: 5 }),
      fc.infiniteStream(field),
      (width, height, fields) => {
        const rows = Array.from({ length: height }, () => [...fields.take(width)]);
        expect(readCsv(csvOf(rows))).toEqual(rows.map((row) => row.map(shown)));
      },
    ),
  );
});

test("only fields that need it are quoted", () => {
  expect(csvOf([["a", "b c", 'say "hi"', "x,y", "two\nlines", ""]])).toBe('a,b c,"say ""hi""","x,y","two\nlines",\n');
});

test.each([
  ['=HYPERLINK("http://evil")', '\'=HYPERLINK("http://evil")'],
  ["+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"],
  ["@SUM(1)", "'@SUM(1)"],
  ["-2+3", "'-2+3"],
  [" =1", "' =1"],
  ["\t=1", "'\t=1"],
  ["\uff1d1", "'\uff1d1"],
  ["-5", "-5"],
  ["+3.25", "+3.25"],
  ["-", "-"],
  ["a=b", "a=b"],
])("a spreadsheet takes %j for a text or a number", (text, expected) => {
  expect(readCsv(csvOf([["x", text]]))).toEqual([["x", expected]]);
});

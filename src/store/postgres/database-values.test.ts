import fc from "fast-check";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { parseTextArray } from "./database-values.ts";
import { parseTimestamp } from "./timestamp-text.ts";

describe("a point in time", () => {
  const anyDate = fc.date({
    min: new Date("0100-01-01T00:00:00Z"),
    max: new Date("9999-12-31T23:59:59.999Z"),
    noInvalidDate: true,
  });
  /** As PostgreSQL writes it: to the microsecond, and without zeros at the end. */
  const written = (date: Date, microseconds: number): string => {
    const [day = "", time = ""] = date.toISOString().split("T");
    const fraction = `${time.slice(9, 12)}${String(microseconds).padStart(3, "0")}`.replace(/0+$/, "");
    return `${day} ${time.slice(0, 8)}${fraction === "" ? "" : `.${fraction}`}+00`;
  };

  test("is read to the millisecond, and never ahead of what is written", () => {
    fc.assert(
      fc.property(anyDate, fc.integer({ min: 0, max: 999 }), (date, microseconds) => {
        expect(parseTimestamp(written(date, microseconds))).toEqual(date);
      }),
    );
  });

  test.each([
    ["2026-01-31 12:00:00+02", new Date("2026-01-31T10:00:00Z")],
    ["2026-01-31 12:00:00.5-03:30", new Date("2026-01-31T15:30:00.500Z")],
    ["12026-01-31 12:00:00+00", new Date("+012026-01-31T12:00:00Z")],
    ["0044-03-15 00:00:00+00", new Date("0044-03-15T00:00:00Z")],
    ["infinity", Number.POSITIVE_INFINITY],
    ["-infinity", Number.NEGATIVE_INFINITY],
  ])("written otherwise, as in %s, is read as well", (text, expected) => {
    expect(parseTimestamp(text)).toEqual(expected);
  });
});

describe("a list of texts", () => {
  const quoted = (item: string | null): string =>
    item === null ? "NULL" : `"${item.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
  /** As PostgreSQL does: quotes only where the text would mean something else without. */
  const written = (items: readonly (string | null)[]): string =>
    `{${items.map((item) => (item !== null && /^[^\s"\\{},]+$/.test(item) && item.toUpperCase() !== "NULL" ? item : quoted(item))).join(",")}}`;

  test("is read as it was written, whatever is in it", () => {
    const anyItem = fc.oneof(
      fc.string(),
      fc.constantFrom("a", "02:01:00:00:00:01", "null", "NULL", "annulled", "{}", "a,b"),
      fc.constant(null),
    );
    fc.assert(
      fc.property(fc.array(anyItem), (items) => {
        expect(parseTextArray(written(items))).toEqual(items);
      }),
    );
  });

  test("of lists is left to the driver", () => {
    expect(parseTextArray("{{a,b},{c,d}}")).toEqual([
      ["a", "b"],
      ["c", "d"],
    ]);
    expect(pg.types.getTypeParser(1009 as number, "text")("{a}")).toEqual(parseTextArray("{a}"));
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseOrderBy, printOrderBy, type SortKey } from "./order-by.ts";

const FIELDS = { rack: "text", created_at: "time", slot: "number", labels: "labels" } as const;
const parse = (text: string) => parseOrderBy(text, FIELDS);

describe("an order is read", () => {
  test.each<[string, SortKey[]]>([
    ["", []],
    ["rack", [{ field: "rack", descending: false }]],
    [
      "rack asc, created_at DESC",
      [
        { field: "rack", descending: false },
        { field: "created_at", descending: true },
      ],
    ],
    [
      'labels."a b" desc,slot',
      [
        { field: "labels", key: "a b", descending: true },
        { field: "slot", descending: false },
      ],
    ],
  ])("%s", (text, keys) => {
    expect(parse(text)).toEqual(keys);
  });

  test("and any order that is printed parses to itself", () => {
    const key = fc.oneof(
      fc.record({ field: fc.constantFrom("rack", "created_at", "slot"), descending: fc.boolean() }),
      fc.record({
        field: fc.constant("labels"),
        key: fc.string({ unit: "binary", minLength: 1 }).filter((text) => !text.includes("\0")),
        descending: fc.boolean(),
      }),
    );
    const keys = fc.uniqueArray(key, { maxLength: 5, selector: (each) => JSON.stringify({ ...each, descending: 0 }) });
    fc.assert(
      fc.property(keys, (order) => {
        fc.pre(printOrderBy(order).length <= 1_024);
        expect(parse(printOrderBy(order))).toEqual(order);
      }),
    );
  });
});

describe("a wrong order is refused with the position and what was expected", () => {
  const known = "a field to sort by (rack, created_at, slot, labels.<key>)";
  test.each([
    ["colour", `at position 1: expected ${known}, found "colour"`],
    ["rack,", `at position 6: expected ${known}, found the end`],
    ["rack down", 'at position 6: expected a comma, asc, desc or the end, found "down"'],
    ["rack asc desc", 'at position 10: expected a comma, asc, desc or the end, found "desc"'],
    ["rack, slot, rack desc", "at position 13: rack is named twice"],
    ["labels", `at position 1: expected ${known}, found "labels"`],
    ["labels.a, labels.b, labels.c, labels.d, labels.e, rack", "at position 50: at most 5 fields are allowed"],
  ])("%j", (text, message) => {
    expect(() => parse(text)).toThrow(
      expect.objectContaining({
        kind: "invalid_argument",
        message: `order_by: ${message}`,
        detail: { field: "order_by" },
      }),
    );
  });
});

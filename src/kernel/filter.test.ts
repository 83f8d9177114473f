import fc from "fast-check";
import { describe, expect, expectTypeOf, test } from "vitest";
import { AppError } from "./errors.ts";
import { FILTER_LIMITS, type Filter, type FilterTerm, parseFilter, printFilter } from "./filter.ts";

const FIELDS = { phase: ["READY", "IN_SERVICE", "AND"], rack: "text", machine_id: "text", labels: "labels" } as const;
const parse = (text: string) => parseFilter(text, FIELDS);

describe("a filter is read", () => {
  test.each<[string, Filter]>([
    ["", []],
    ["  \n ", []],
    ["phase=READY", [{ field: "phase", operator: "=", value: "READY" }]],
    ["phase != READY", [{ field: "phase", operator: "!=", value: "READY" }]],
    ["phase IN (READY)", [{ field: "phase", operator: "in", values: ["READY"] }]],
    ["phase in(READY,IN_SERVICE )", [{ field: "phase", operator: "in", values: ["READY", "IN_SERVICE"] }]],
    [
      "rack=rack-1 AND phase=READY and machine_id!=m-1",
      [
        { field: "rack", operator: "=", value: "rack-1" },
        { field: "phase", operator: "=", value: "READY" },
        { field: "machine_id", operator: "!=", value: "m-1" },
      ],
    ],
    ['rack="hall 2, row 7"', [{ field: "rack", operator: "=", value: "hall 2, row 7" }]],
    ["rack='say \"hi\"'", [{ field: "rack", operator: "=", value: 'say "hi"' }]],
    ['rack="a\\"b\\\\c\\\'d"', [{ field: "rack", operator: "=", value: "a\"b\\c'd" }]],
    ['rack=""', [{ field: "rack", operator: "=", value: "" }]],
    ['rack="AND"', [{ field: "rack", operator: "=", value: "AND" }]],
    ["rack=plan/repave-join:22.04+x@y", [{ field: "rack", operator: "=", value: "plan/repave-join:22.04+x@y" }]],
    ["labels.env=prod", [{ field: "labels", key: "env", operator: "=", value: "prod" }]],
    ["labels.example.com/zone=a", [{ field: "labels", key: "example.com/zone", operator: "=", value: "a" }]],
    ['labels."my key" IN (a, "b c")', [{ field: "labels", key: "my key", operator: "in", values: ["a", "b c"] }]],
    ["labels.__proto__=x", [{ field: "labels", key: "__proto__", operator: "=", value: "x" }]],
  ])("%s", (text, filter) => {
    expect(parse(text)).toEqual(filter);
  });

  test("with fields of the declared set as its type", () => {
    expectTypeOf(parse("")).toEqualTypeOf<Filter<"phase" | "rack" | "machine_id" | "labels">>();
    expect(parse("")).toEqual([]);
  });
});

describe("a wrong filter is refused with the position and what was expected", () => {
  const known = "a field (phase, rack, machine_id, labels.<key>)";
  test.each([
    ["colour=red", `at position 1: expected ${known}, found "colour"`],
    ["=red", `at position 1: expected ${known}, found "="`],
    ["constructor=x", `at position 1: expected ${known}, found "constructor"`],
    ["phase", "at position 6: expected =, != or IN, found the end"],
    ["phase READY", 'at position 7: expected =, != or IN, found "READY"'],
    ["phase > READY", 'at position 7: expected =, != or IN, found ">"'],
    ["phase=", "at position 7: expected a value for phase, found the end"],
    ["phase=ready", 'at position 7: expected for phase one of READY, IN_SERVICE, AND, found "ready"'],
    ['phase=""', 'at position 7: expected for phase one of READY, IN_SERVICE, AND, found ""'],
    ["phase='IN SERVICE'", 'at position 7: expected for phase one of READY, IN_SERVICE, AND, found "IN SERVICE"'],
    ["phase=  nope", 'at position 9: expected for phase one of READY, IN_SERVICE, AND, found "nope"'],
    [
      "rack= AND phase=READY",
      'at position 7: expected a value for rack (in quotes where it is the word AND), found "AND"',
    ],
    ["rack=a rack=b", 'at position 8: expected AND or the end, found "rack"'],
    ["rack=a OR rack=b", 'at position 8: expected AND or the end, found "OR"'],
    ["rack=a AND", `at position 11: expected ${known}, found the end`],
    ["rack=a AND AND", `at position 12: expected ${known}, found "AND"`],
    ["rack IN a", 'at position 9: expected (, found "a"'],
    ["rack IN ()", 'at position 10: expected a value for rack, found ")"'],
    ["rack IN (a b)", 'at position 12: expected , or ), found "b"'],
    ["rack IN (a,", "at position 12: expected a value for rack, found the end"],
    ["rack IN (a", "at position 11: expected , or ), found the end"],
    ["labels=x", `at position 1: expected ${known}, found "labels"`],
    ["labels.=x", 'at position 1: expected labels.<key>, found "labels."'],
    ['labels.""=x', 'at position 1: expected labels.<key>, found "labels."'],
    ["rack.x=y", `at position 1: expected ${known}, found "rack.x"`],
    ['rack="abc', 'at position 6: the quote " is never closed'],
    ['rack="a\\n"', 'at position 9: expected " or \\ after \\, found "n"'],
    ["rack=a\0b", "at position 6: NUL and halves of surrogate pairs are not allowed"],
    ["rack='\ud800'", "at position 6: NUL and halves of surrogate pairs are not allowed"],
  ])("%j", (text, message) => {
    expect(() => parse(text)).toThrow(
      expect.objectContaining({ kind: "invalid_argument", message: `filter: ${message}`, detail: { field: "filter" } }),
    );
  });

  test("when it is longer than a filter may be", () => {
    expect(parse(`rack=${"a".repeat(FILTER_LIMITS.characters - 5)}`)).toHaveLength(1);
    expect(() => parse(`rack=${"a".repeat(FILTER_LIMITS.characters - 4)}`)).toThrow("filter: is 8193 characters long");
  });

  test("when it has too many conditions or values", () => {
    const terms = (count: number) => Array.from({ length: count }, () => "rack=a").join(" AND ");
    expect(parse(terms(FILTER_LIMITS.terms))).toHaveLength(FILTER_LIMITS.terms);
    expect(() => parse(terms(FILTER_LIMITS.terms + 1))).toThrow("at most 50 conditions are allowed");
    const values = (count: number) => `rack IN (${Array.from({ length: count }, () => "a").join(",")})`;
    expect(parse(values(FILTER_LIMITS.values))).toHaveLength(1);
    expect(() => parse(values(FILTER_LIMITS.values + 1))).toThrow("at most 500 values are allowed");
  });
});

const storable = fc
  .oneof(fc.string({ unit: "binary" }), fc.string(), fc.constantFrom("AND", "in", "", "a b", '"', "\\", "a'b", "a.b"))
  .filter((text) => !text.includes("\0"));
const comparison = <T>(where: fc.Arbitrary<T>, value: fc.Arbitrary<string>) =>
  fc.oneof(
    fc.record({ where, operator: fc.constantFrom("=" as const, "!=" as const), value }),
    fc.record({ where, operator: fc.constant("in" as const), values: fc.array(value, { minLength: 1, maxLength: 5 }) }),
  );
const term: fc.Arbitrary<FilterTerm> = fc
  .oneof(
    comparison(fc.record({ field: fc.constantFrom("rack", "machine_id") }), storable),
    comparison(fc.record({ field: fc.constant("phase") }), fc.constantFrom(...FIELDS.phase)),
    comparison(fc.record({ field: fc.constant("labels"), key: storable.filter((key) => key !== "") }), storable),
  )
  .map(({ where, ...rest }) => ({ ...where, ...rest }) as FilterTerm);

describe("of any filter and any text", () => {
  test("a filter that is printed parses to itself", () => {
    fc.assert(
      fc.property(fc.array(term, { maxLength: 6 }), (filter) => {
        expect(parse(printFilter(filter))).toEqual(filter);
      }),
      { numRuns: 500 },
    );
  });

  test("text is a filter that prints to an equal one, or is refused as the caller's mistake, and nothing else", () => {
    const piece = fc.oneof(
      fc.constantFrom(
        "phase",
        "rack",
        "labels.",
        "=",
        "!=",
        " IN ",
        "(",
        ")",
        ",",
        " AND ",
        '"',
        "'",
        "\\",
        "READY",
        " ",
      ),
      fc.string({ unit: "binary", maxLength: 3 }),
    );
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.array(piece, { maxLength: 12 }).map((all) => all.join("")),
    );
    fc.assert(
      fc.property(text, (anything) => {
        try {
          const filter = parse(anything);
          expect(parse(printFilter(filter))).toEqual(filter);
        } catch (error) {
          if (!(error instanceof AppError)) throw error;
          expect(error).toMatchObject({ kind: "invalid_argument", detail: { field: "filter" } });
          expect(error.message).toMatch(/^filter: at position \d+: /);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

import fc from "fast-check";
import { describe, expect, expectTypeOf, test } from "vitest";
import { AppError } from "../errors.ts";
import { anyOf, type Filter, type FilterClause, type FilterTerm, termsOf } from "./filter.ts";
import { FILTER_LIMITS, parseFilter } from "./parse-filter.ts";
import { printFilter } from "./print-filter.ts";

const FIELDS = {
  phase: ["READY", "IN_SERVICE", "AND"],
  rack: "text",
  machine_id: "text",
  labels: "labels",
  slot: "number",
  since: "time",
  tag: "tags",
} as const;
const NOW = new Date("2026-01-31T12:00:00.000Z");
const parse = (text: string) => parseFilter(text, FIELDS, () => NOW);

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
    ["rack~Rack-1", [{ field: "rack", operator: "~", value: "Rack-1" }]],
    ["rack !~ b", [{ field: "rack", operator: "!~", value: "b" }]],
    ["labels.env^=prod", [{ field: "labels", key: "env", operator: "^=", value: "prod" }]],
    ["slot >= 07", [{ field: "slot", operator: ">=", value: "7" }]],
    ['slot IN (1, "")', [{ field: "slot", operator: "in", values: ["1", ""] }]],
    ["since<2026-01-30T10:00:00+02:00", [{ field: "since", operator: "<", value: "2026-01-30T08:00:00.000Z" }]],
    ["since>-2h", [{ field: "since", operator: ">", value: "2026-01-31T10:00:00.000Z" }]],
    ["since>=2026-01-30", [{ field: "since", operator: ">=", value: "2026-01-30T00:00:00.000Z" }]],
    ['since!=""', [{ field: "since", operator: "!=", value: "" }]],
    ["tag IN (gpu, spare)", [{ field: "tag", operator: "in", values: ["gpu", "spare"] }]],
    // Words of the grammar are values wherever only a value can stand, as they were before the grammar had them.
    ["rack=OR", [{ field: "rack", operator: "=", value: "OR" }]],
    ["rack=not", [{ field: "rack", operator: "=", value: "not" }]],
  ])("%s", (text, filter) => {
    expect(parse(text)).toEqual(filter);
  });

  test("with fields of the declared set as its type", () => {
    expectTypeOf(parse("")).toEqualTypeOf<Filter<keyof typeof FIELDS>>();
    expect(parse("")).toEqual([]);
  });
});

describe("AND, OR, NOT and parentheses", () => {
  const is = (value: string): FilterTerm => ({ field: "rack", operator: "=", value });
  const [a, b, c, d] = ["a", "b", "c", "d"].map(is) as [FilterTerm, FilterTerm, FilterTerm, FilterTerm];
  test.each<[string, Filter]>([
    ["rack=a OR rack=b", [{ any: [[a], [b]] }]],
    ["rack=a or rack=b AND rack=c", [{ any: [[a], [b, c]] }]],
    [
      "rack=a AND rack=b OR rack=c AND rack=d",
      [
        {
          any: [
            [a, b],
            [c, d],
          ],
        },
      ],
    ],
    ["(rack=a OR rack=b) AND rack=c", [{ any: [[a], [b]] }, c]],
    ["rack=a AND (rack=b AND (rack=c))", [a, b, c]],
    ["rack=a OR (rack=b OR rack=c)", [{ any: [[a], [b], [c]] }]],
    ["NOT rack=a AND rack=b", [{ not: [a] }, b]],
    ["not(rack=a AND rack=b)", [{ not: [a, b] }]],
    ["NOT NOT (rack=a OR rack=b)", [{ not: [{ not: [{ any: [[a], [b]] }] }] }]],
    ["((rack=a))", [a]],
  ])("%s", (text, filter) => {
    expect(parse(text)).toEqual(filter);
  });

  test("nest only so deep, and count their conditions together", () => {
    const nested = (depth: number) => `${"(".repeat(depth)}rack=a${")".repeat(depth)}`;
    expect(parse(nested(FILTER_LIMITS.depth))).toEqual([a]);
    for (const deep of [nested(FILTER_LIMITS.depth + 1), `${"NOT ".repeat(FILTER_LIMITS.depth + 1)}rack=a`])
      expect(() => parse(deep)).toThrow("at most 20 parentheses or NOTs in a row are allowed");
    const choices = Array.from({ length: FILTER_LIMITS.terms + 1 }, () => "(rack=a)").join(" OR ");
    expect(() => parse(choices)).toThrow("at most 50 conditions are allowed");
  });

  test("a time that is relative to now is the only one for which the time is asked", () => {
    const unasked = () => {
      throw new Error("asked");
    };
    expect(parseFilter("rack=a AND since>2026-01-01", FIELDS, unasked)).toHaveLength(2);
    expect(() => parseFilter("since>-1m", FIELDS, unasked)).toThrow("asked");
  });
});

describe("a wrong filter is refused with the position and what was expected", () => {
  const known = "a field (phase, rack, machine_id, labels.<key>, slot, since, tag)";
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
    ["rack=a rack=b", 'at position 8: expected AND, OR or the end, found "rack"'],
    ["rack=a XOR rack=b", 'at position 8: expected AND, OR or the end, found "XOR"'],
    ["(rack=a", "at position 8: expected AND, OR or ), found the end"],
    ["rack=a)", 'at position 7: expected AND, OR or the end, found ")"'],
    ["()", `at position 2: expected ${known}, found ")"`],
    ["rack=a OR", `at position 10: expected ${known}, found the end`],
    ["NOT", `at position 4: expected ${known}, found the end`],
    ["phase~READY", 'at position 6: expected =, != or IN, found "~"'],
    ["rack>a", 'at position 5: expected =, !=, ~, !~, ^= or IN, found ">"'],
    ["rack=~a", 'at position 6: expected a value for rack (in quotes where it begins with ~), found "~a"'],
    ['rack~""', 'at position 6: expected for rack some text, found ""'],
    ["slot=", "at position 6: expected a value for slot, found the end"],
    ["slot=a", 'at position 6: expected for slot a number, found "a"'],
    ['slot>""', 'at position 6: expected for slot a number, found ""'],
    ["slot~1", 'at position 5: expected =, !=, <, <=, >, >= or IN, found "~"'],
    [
      "since>soon",
      'at position 7: expected for since a time such as 2026-01-31T12:00:00Z, or -2h for two hours ago, found "soon"',
    ],
    [
      "since>2026-02-30",
      'at position 7: expected for since a time such as 2026-01-31T12:00:00Z, or -2h for two hours ago, found "2026-02-30"',
    ],
    [
      "since>-999999999d",
      'at position 7: expected for since a time such as 2026-01-31T12:00:00Z, or -2h for two hours ago, found "-999999999d"',
    ],
    [
      "since<9999-12-31T23:59:59-14:00",
      'at position 7: expected for since a time such as 2026-01-31T12:00:00Z, or -2h for two hours ago, found "9999-12-31T23:59:59-14:00"',
    ],
    [
      "since>9999-12-31T23:59:59.999Z",
      'at position 7: expected for since a time such as 2026-01-31T12:00:00Z, or -2h for two hours ago, found "9999-12-31T23:59:59.999Z"',
    ],
    [
      "since=2026-01-31",
      'at position 7: expected for since with = or != only "", which means that there is none, found "2026-01-31"',
    ],
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
    expect(() => parse(`rack=${"a".repeat(FILTER_LIMITS.characters - 4)}`)).toThrow(
      "filter: has 8193 characters; the limit is 8192",
    );
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
const text = <T>(where: fc.Arbitrary<T>) =>
  fc.oneof(
    comparison(where, storable),
    fc.record({
      where,
      operator: fc.constantFrom("~" as const, "!~" as const, "^=" as const),
      value: storable.filter((value) => value !== ""),
    }),
  );
const order = fc.constantFrom("<" as const, "<=" as const, ">" as const, ">=" as const);
const number = fc.integer().map(String);
const time = fc
  .date({ noInvalidDate: true, min: new Date("0001-01-01T00:00:00Z"), max: new Date("9999-12-31T00:00:00Z") })
  .map((date) => date.toISOString());
const term: fc.Arbitrary<FilterTerm> = fc
  .oneof(
    comparison(fc.constant({ field: "phase" }), fc.constantFrom(...FIELDS.phase)),
    text(fc.constantFrom({ field: "rack" }, { field: "machine_id" }, { field: "tag" })),
    text(fc.record({ field: fc.constant("labels"), key: storable.filter((key) => key !== "") })),
    comparison(fc.constant({ field: "slot" }), number),
    fc.record({ where: fc.constant({ field: "slot" }), operator: order, value: number }),
    fc.record({ where: fc.constant({ field: "since" }), operator: order, value: time }),
    fc.record({
      where: fc.constant({ field: "since" }),
      operator: fc.constantFrom("=" as const, "!=" as const),
      value: fc.constant(""),
    }),
  )
  .map(({ where, ...rest }) => ({ ...where, ...rest }) as FilterTerm);

const some = (filter: fc.Arbitrary<Filter>) => filter.filter(({ length }) => length > 0);
/** As the parser builds them: no choice of one, and no choice whose only part is a choice. */
const { filter: anyFilter } = fc.letrec<{ clause: FilterClause; filter: Filter }>((tie) => ({
  clause: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    term,
    fc.array(some(tie("filter")), { minLength: 2, maxLength: 3 }).map((choices) => anyOf(choices)[0] as FilterClause),
    some(tie("filter")).map((inside) => ({ not: inside })),
  ),
  filter: fc.array(tie("clause"), { maxLength: 4 }),
}));

describe("of any filter and any text", () => {
  test("a filter that is printed parses to itself", () => {
    fc.assert(
      fc.property(anyFilter, (filter) => {
        fc.pre(termsOf(filter).length <= FILTER_LIMITS.terms && printFilter(filter).length <= FILTER_LIMITS.characters);
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
        " OR ",
        " NOT ",
        "slot",
        "since",
        "<",
        ">=",
        "~",
        "^=",
        "-1h",
        "7",
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

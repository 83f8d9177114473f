import { describe, expect, test } from "vitest";
import { parseFilter } from "../../kernel/filter/parse-filter.ts";
import { filterSql } from "./filter-sql.ts";

const FIELDS = { rack: "text", phase: ["READY", "RMA"], labels: "labels" } as const;
const COLUMNS = { rack: "t.rack", phase: "t.state", labels: { labels: "t.labels" } } as const;

const sqlOf = (text: string, values: unknown[] = []) => ({
  sql: filterSql(parseFilter(text, FIELDS), COLUMNS, values),
  values,
});

describe("a filter becomes a condition", () => {
  test.each<[string, string, unknown[]]>([
    ["", "true", []],
    ["rack=rack-1", "t.rack = $1::text", ["rack-1"]],
    ["rack!=rack-1", "t.rack is distinct from $1::text", ["rack-1"]],
    ["rack IN (a, b)", "t.rack = any($1::text[])", [["a", "b"]]],
    ['rack=""', "coalesce(t.rack, '') = ''", []],
    ['rack!=""', "coalesce(t.rack, '') <> ''", []],
    ['rack IN (a, "")', "(t.rack = any($1::text[]) or t.rack is null)", [["a", ""]]],
    ["rack=a AND phase=READY", "t.rack = $1::text and t.state = $2::text", ["a", "READY"]],
    ["labels.env=prod", "t.labels @> $1::jsonb", ['{"env":"prod"}']],
    ["labels.env!=prod", "not (t.labels @> $1::jsonb)", ['{"env":"prod"}']],
    ["labels.env IN (a, b)", "(t.labels ->> $1::text) = any($2::text[])", ["env", ["a", "b"]]],
    ['labels.env=""', "coalesce((t.labels ->> $1::text), '') = ''", ["env"]],
    ["labels.__proto__=x", "t.labels @> $1::jsonb", ['{"__proto__":"x"}']],
  ])("%s", (text, sql, values) => {
    expect(sqlOf(text)).toEqual({ sql, values });
  });

  test("whose parameters follow those that are there already", () => {
    expect(sqlOf("rack=a AND labels.env=prod", ["before"])).toEqual({
      sql: "t.rack = $2::text and t.labels @> $3::jsonb",
      values: ["before", "a", '{"env":"prod"}'],
    });
  });

  test("that holds nothing of what a caller wrote", () => {
    const { sql, values } = sqlOf(`rack="'; drop table machines; --" AND labels."x' or '1'='1"="y' --"`);
    expect(sql).toBe("t.rack = $1::text and t.labels @> $2::jsonb");
    expect(values).toEqual(["'; drop table machines; --", JSON.stringify({ "x' or '1'='1": "y' --" })]);
  });
});

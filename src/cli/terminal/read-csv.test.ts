import { describe, expect, test } from "vitest";
import { csvOf } from "./csv.ts";
import { readCsv } from "./read-csv.ts";

const read = (text: string) => readCsv(text, "nodes.csv", ["hostname", "note"]);
const cellsOf = (text: string) => read(text).map(({ cells }) => cells);

describe("a CSV file", () => {
  test("is read by the names of its columns, in whatever order they come", () => {
    expect(cellsOf("note,hostname\nfirst,gpu-1\n")).toEqual([{ hostname: "gpu-1", note: "first" }]);
  });

  test("may quote fields, with commas, quotes and line breaks in them", () => {
    expect(cellsOf('hostname,note\r\ngpu-1,"a, ""b""\nc"\r\n')).toEqual([{ hostname: "gpu-1", note: 'a, "b"\nc' }]);
  });

  test("may have a byte order mark, empty lines and remarks, and no line break at its end", () => {
    expect(read("\uFEFFhostname,note\n\n# the first row\ngpu-1,")).toEqual([
      { line: 4, cells: { hostname: "gpu-1", note: "" } },
    ]);
  });

  test("that this program writes is read back as it was", () => {
    const rows = [
      ["hostname", "note"],
      ["gpu-1", 'a,"b"\nc'],
      ["gpu-2", ""],
    ];
    expect(read(csvOf(rows)).map(({ cells }) => [cells.hostname, cells.note])).toEqual(rows.slice(1));
  });

  test.each([
    ["without a line", "", "is empty"],
    ["with a column that there is not", "hostname,nota\n", '"nota" is no column'],
    ["with a column twice", "hostname,hostname\n", "comes twice"],
    ["with a field too many", "hostname,note\na,b\nc,d,e\n", "line 3: has 3 fields, expected 2"],
    ["with a quote that stays open", 'hostname,note\na,"b\n', "line 2: a quote is not closed"],
  ])("%s is refused, and the message says where", (_, text, words) => {
    expect(() => read(text)).toThrow(words);
  });
});

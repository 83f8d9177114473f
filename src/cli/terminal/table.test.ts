import fc from "fast-check";
import { expect, test } from "vitest";
import { tableOf } from "./table.ts";

const cells = (...texts: string[]) => texts.map((text) => ({ text, tone: undefined }));
const plain = { color: false, width: undefined };

test("columns are padded to their widest cell, and nothing is a dash", () => {
  expect(tableOf(["ID", "NAME"], [cells("long-one", "a"), cells("b", "")], plain)).toBe(
    "ID        NAME\nlong-one  a\nb         -\n",
  );
});

test("columns line up behind characters that take two columns of a terminal, or none", () => {
  const rows = [cells("機架", "a"), cells("e\u0301", "b"), cells("👩‍🔧", "c"), cells("abcd", "d")];
  expect(tableOf(["ID", "NAME"], rows, plain)).toBe(
    ["ID    NAME", "機架  a", "e\u0301     b", "👩‍🔧    c", "abcd  d", ""].join("\n"),
  );
});

const at = (width: number) => ({ color: false, width });
const LONG = "wrong credentials: the BMC at 10.0.0.9 does not accept user admin with the given password";

test("a last column with room of its own goes on below itself, whole", () => {
  expect(tableOf(["ID", "REASON"], [cells("m-1", LONG)], at(50))).toBe(
    [
      "ID   REASON",
      "m-1  wrong credentials: the BMC at 10.0.0.9 does",
      "     not accept user admin with the given password",
      "",
    ].join("\n"),
  );
});

test("a last column without room stands below the others, and takes no line where it says nothing", () => {
  const wide = "s".repeat(40);
  expect(tableOf(["STEP", "MESSAGE"], [cells(wide, LONG), cells("b", "")], at(60))).toBe(
    [
      "STEP",
      "    MESSAGE",
      wide,
      "    wrong credentials: the BMC at 10.0.0.9 does not accept",
      "    user admin with the given password",
      "b",
      "",
    ].join("\n"),
  );
});

test("several columns without room stand below the others, each with its title", () => {
  const rows = [cells("a".repeat(20), "b".repeat(10), "kim", "asked for"), cells("a", "b", "", "")];
  expect(tableOf(["ID", "KIND", "WHO", "WHY"], rows, at(34))).toBe(
    [
      "ID                    KIND",
      `${"a".repeat(20)}  ${"b".repeat(10)}`,
      "    WHO kim  WHY asked for",
      "a                     b",
      "",
    ].join("\n"),
  );
});

test("where there is too little room, columns that say nothing go first, then the minor ones", () => {
  const heads = ["ID", "BANNERS", { title: "PROVIDER", minor: true }, "RACK"];
  const row = [cells("m-1", "", "datacenter", "rack-1")];
  expect(tableOf(heads, row, at(40))).toContain("BANNERS");
  expect(tableOf(heads, row, at(28))).toBe("ID   PROVIDER    RACK\nm-1  datacenter  rack-1\n");
  expect(tableOf(heads, row, at(15))).toBe("ID   RACK\nm-1  rack-1\n");
});

test("where there is too little room, cells are said in fewer characters", () => {
  const row = [{ text: "2026-01-31 12:00:00", short: "12:00:00", tone: undefined }, ...cells("created")];
  expect(tableOf(["TIME", "EVENT"], [row], at(30))).toContain("2026-01-31 12:00:00  created");
  expect(tableOf(["TIME", "EVENT"], [row], at(20))).toContain("12:00:00  created");
});

test("no line is wider than the terminal but for a word that is, and nothing is lost", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 12 });
  const text = fc.array(word, { minLength: 1, maxLength: 12 }).map((words) => words.join(" "));
  const row = fc.tuple(word, word, text, text);
  fc.assert(
    fc.property(fc.array(row, { minLength: 1, maxLength: 5 }), fc.integer({ min: 18, max: 120 }), (rows, width) => {
      const out = tableOf(
        ["A", "B", "C", "D"],
        rows.map((each) => cells(...each)),
        at(width),
      );
      const spoken = out.split(/\s+/).sort();
      for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(width);
      for (const said of rows.flat().flatMap((each) => each.split(" "))) expect(spoken).toContain(said);
    }),
  );
});

test("colours do not shift columns", () => {
  const row = [{ text: "on", tone: "good" as const }, ...cells("x")];
  expect(tableOf(["POWER", "N"], [row], { color: true, width: undefined })).toContain("\u001b[32mon\u001b[0m     x");
});

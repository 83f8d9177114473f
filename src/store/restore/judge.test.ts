import { describe, expect, test } from "vitest";
import { judge, type Memory } from "./judge.ts";
import type { Standing } from "./standing.ts";

const IDENTITY = { systemIdentifier: "7709979204974339093", databaseOid: 16_384, journalOid: 16_500 };
const standing = (over: Partial<Standing> = {}): Standing => ({
  recorded: { ...IDENTITY, databaseId: "d-1", generation: 3 },
  actual: IDENTITY,
  witnessesSince: null,
  beat: 7,
  newest: "1.900.40",
  newestAt: new Date(0),
  isAhead: false,
  ...over,
});
const memory = (over: Partial<Memory> = {}): Memory => ({
  databaseId: "d-1",
  generation: 3,
  witness: "w-1",
  beat: 7,
  cursor: "1.900.40",
  at: "2026-01-02T03:04:05.000Z",
  ...over,
});
const signs = (...given: Parameters<typeof judge>) => judge(...given).map(({ sign }) => sign);

describe("what counts as restored", () => {
  test.each([
    ["another server", { systemIdentifier: "1" }, "system identifier"],
    ["another database", { databaseOid: 99 }, "database oid"],
    ["another journal", { journalOid: 99 }, "oid of the journal"],
  ])("%s", (_, other, word) => {
    const [finding] = judge(standing({ actual: { ...IDENTITY, ...other } }), null);
    expect(finding).toMatchObject({ sign: "identity_changed", message: expect.stringContaining(word) });
  });

  test("entries of transactions that are yet to come, also where nobody wrote down who the database was", () => {
    expect(signs(standing({ isAhead: true, recorded: null }), null)).toEqual(["future_entries"]);
  });

  test.each([
    ["a beat that was confirmed is missing", standing({ beat: 6 }), memory()],
    ["the row of the witness is missing", standing({ beat: null }), memory()],
    ["the journal ends before what was seen", standing({ newest: "1.899.99" }), memory()],
    ["the journal is empty", standing({ newest: null }), memory()],
    ["it is a backup of a version that wrote down no identity", standing({ recorded: null, beat: null }), memory()],
    ["a restore that was found is not known any more", standing(), memory({ generation: 4, beat: 0, cursor: null })],
    [
      "the witness is missing, and none was forgotten since",
      standing({ beat: null, witnessesSince: new Date(0) }),
      memory(),
    ],
  ])("%s", (_, now, seen) => {
    expect(signs(now, seen)).toEqual(["behind"]);
  });
});

describe("what does not", () => {
  test.each([
    ["nothing has changed", standing(), memory()],
    ["the database went on without the witness", standing({ newest: "1.5000.90" }), memory()],
    ["a beat was written, and its answer lost", standing({ beat: 8 }), memory()],
    ["nobody remembers anything", standing({ beat: null }), null],
    ["the memory is of another database", standing({ beat: null, newest: null }), memory({ databaseId: "d-2" })],
    [
      "another replica has found a later restore",
      standing({ beat: 1, newest: null, recorded: { ...IDENTITY, databaseId: "d-1", generation: 4 } }),
      memory(),
    ],
    [
      "the witness was forgotten, since it was silent for so long",
      standing({ beat: null, witnessesSince: new Date("2026-02-02") }),
      memory(),
    ],
    [
      "the server does not tell its system identifier any more",
      standing({ actual: { ...IDENTITY, systemIdentifier: null } }),
      memory(),
    ],
    ["a new epoch of the journal", standing({ newest: "2.3.1" }), memory()],
    ["the database is new", standing({ recorded: null, beat: null, newest: null }), memory()],
  ])("%s", (_, now, seen) => {
    expect(signs(now, seen)).toEqual([]);
  });
});

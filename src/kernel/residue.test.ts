import { describe, expect, test } from "vitest";
import type { JsonObject } from "./lifecycle.ts";
import { isSameLeft, type Residue, readResidue, residueFacts, residueLine } from "./residue.ts";

const LEFT = { step: "arm", what: "it may boot from elsewhere" };
const CAUSE = { code: "unreachable", facts: { at: "bmc" } } as const;
const RECORDS: readonly (readonly [line: string, record: Residue])[] = [
  ["arm: it may boot from elsewhere", LEFT],
  [
    "arm: it may boot from elsewhere (undoing it failed: no route)",
    { ...LEFT, notUndone: { how: "failed", why: "no route", cause: CAUSE } },
  ],
  [
    "arm: it may boot from elsewhere (undoing it was refused: no (403))",
    { ...LEFT, notUndone: { how: "refused", why: "no (403)" } },
  ],
  ["arm: it was booted", { ...LEFT, found: "it was booted" }],
  ["arm: it is being released", { ...LEFT, found: "it is being released", notUndone: { how: "goes_on", why: "" } }],
];

describe("what a run left behind", () => {
  test.each(RECORDS)("is shown as: %s", (line, record) => {
    expect(residueLine(record)).toBe(line);
  });

  test("is read as it was kept, through JSON", () => {
    const records = RECORDS.map(([, record]) => record);
    expect(readResidue(JSON.parse(JSON.stringify(residueFacts(records))))).toEqual(records);
  });

  test("is kept as lines too, which is all that the version before can read", () => {
    const { residue } = residueFacts(RECORDS.map(([, record]) => record));
    expect(residue).toEqual(RECORDS.map(([line]) => line));
  });

  test.each([
    ["arm: it may boot from elsewhere", { what: "arm: it may boot from elsewhere" }],
    [
      "arm: it may boot from elsewhere (undoing it failed: no (undoing it was refused: twice))",
      {
        what: "arm: it may boot from elsewhere",
        notUndone: { how: "failed", why: "no (undoing it was refused: twice)" },
      },
    ],
    [
      "a: b: it may (run) (undoing it was refused: no\nway)",
      { what: "a: b: it may (run)", notUndone: { how: "refused", why: "no\nway" } },
    ],
  ])("of a version that kept lines only is read by its line: %s", (line, record) => {
    const [read] = readResidue({ residue: [line], residueRecords: [] });
    expect(read).toEqual(record);
    expect(read && residueLine(read)).toBe(line);
  });

  test("of a version that kept lines only is the same as what is kept now", () => {
    const [old] = readResidue({ residue: ["arm: it may boot from elsewhere"], residueRecords: [] });
    expect(old && isSameLeft(old, LEFT)).toBe(true);
    expect(old && isSameLeft(old, { ...LEFT, step: "disarm" })).toBe(false);
  });

  test("is what the lines say, where a version that knows lines only has changed them since", () => {
    const { residue, residueRecords } = residueFacts(RECORDS.map(([, record]) => record));
    const changed = ["pave: the disk may be wiped", residue[1] ?? ""];
    expect(readResidue({ residue: changed, residueRecords })).toEqual([
      { what: "pave: the disk may be wiped" },
      RECORDS[1]?.[1],
    ]);
  });

  test("is read by its line where the record is none that we know", () => {
    const residue = ["arm: it may boot from elsewhere"];
    const odd: JsonObject[] = [{}, { what: 3 }, { ...LEFT, notUndone: { how: "later", why: "" } }, { notUndone: [] }];
    expect(readResidue({ residue, residueRecords: odd })).toEqual([{ what: residue[0] }]);
  });
});

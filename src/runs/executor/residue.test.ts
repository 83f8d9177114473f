import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NOT_UNDONE, type Residue, readResidue, residueFacts, residueLines } from "../../kernel/residue.ts";
import { eachOnce, withMoreResidue, withoutResidueOf, withoutUndone } from "./residue.ts";

const left = (step: string, what: string, how?: "failed" | "refused", why = ""): Residue => ({
  step,
  what,
  ...(how && { notUndone: { how, why } }),
});

test("what a step left behind is no more once that step was done", () => {
  const residue = [left("reboot", "may reboot later"), left("reboot-2", "the same"), left("ssh", "may still run")];
  expect(withoutResidueOf([left("reboot", "may reboot later")], residue)).toEqual(residue.slice(1));
  expect(withoutResidueOf([left("ssh", "another script may still run")], residue)).toEqual(residue);
  expect(withoutResidueOf([], residue)).toEqual(residue);
  const refused = left("ssh", "may still run", "refused", "no");
  const failed = left("ssh", "may still run", "failed", "no answer");
  expect(withoutResidueOf([left("ssh", "may still run")], [refused, failed])).toEqual([refused]);
});

test("what could not be undone, and was later, is no more but for what was done for good", () => {
  const residue = [
    left("set-netboot", "may boot from the network", "failed", "no answer"),
    left("repave", "may have begun", "refused", "no (undoing it failed: twice)"),
    left("repave", "may have begun"),
    left("set-netboot", "another source", "failed", "no answer"),
  ];
  const undone = [
    { step: "set-netboot", what: "may boot from the network", isWhole: true },
    { step: "repave", what: "may have begun", isWhole: false },
  ];
  expect(withoutUndone(undone, residue)).toEqual([residue[2], residue[2], residue[3]]);
  expect(withoutUndone([], residue)).toEqual(residue);
});

test("what an undo found instead belongs to what its step may have left", () => {
  const found = { ...left("net", "may be in force"), found: "it was confirmed, and is in force" };
  expect(withoutResidueOf([left("net", "may be in force")], [found])).toEqual([]);
  expect(withoutUndone([{ step: "net", what: "may be in force", isWhole: true }], [found])).toEqual([found]);
});

test("what a device was still undoing is no more once that is done", () => {
  const goesOn = { ...left("deploy", "may run"), found: "is being released", notUndone: { how: "goes_on", why: "" } };
  expect(withoutUndone([{ step: "deploy", what: "may run", isWhole: true }], [goesOn as Residue])).toEqual([]);
});

test("what comes to a list that an older version kept is added once", () => {
  const residue = ["ssh: may still run (undoing it failed: no route)"];
  const again = left("ssh", "may still run", "failed", "no route");
  const more = left("repave", "may have begun");
  expect(withMoreResidue({ residue, residueRecords: [] }, [again, more])).toEqual({
    residue: [...residue, "repave: may have begun"],
    residueRecords: [again, more],
  });
});

/** What the version before did with the lines. */
const OLD_NOT_UNDONE = / \(undoing it (?:failed|was refused): /;
const OLD_REFUSED = / \(undoing it was refused: /;
const old = {
  eachOnce(residue: readonly string[]): string[] {
    const beginningOf = (line: string) => line.split(OLD_NOT_UNDONE, 1)[0];
    const isTriedAgain = (line: string, later: readonly string[]) =>
      later.some((other) => OLD_NOT_UNDONE.test(other) && beginningOf(other) === beginningOf(line));
    return [
      ...new Set(
        residue.filter(
          (line, at) =>
            !OLD_NOT_UNDONE.test(line) || OLD_REFUSED.test(line) || !isTriedAgain(line, residue.slice(at + 1)),
        ),
      ),
    ];
  },
  withoutResidueOf: (done: readonly string[], residue: readonly string[]): string[] =>
    residue.filter((line) => !done.some((begins) => line.startsWith(begins)) || OLD_REFUSED.test(line)),
  withoutUndone: (undone: ReadonlyMap<string, boolean>, residue: readonly string[]): string[] =>
    residue.flatMap((line) => {
      const isWhole = [...undone].find(([begins]) => line.startsWith(begins))?.[1];
      if (isWhole === undefined || !OLD_NOT_UNDONE.test(line)) return [line];
      return isWhole ? [] : [line.slice(0, line.search(OLD_NOT_UNDONE))];
    }),
};

describe("decisions by records", () => {
  // None begins as another does: by lines these could not be told apart.
  const what = fc.record({
    step: fc.constantFrom("arm", "boot: now", "pave"),
    what: fc.constantFrom("it may boot", "a script (run.sh) may still run", "the disk: wiped"),
  });
  const why = fc.constantFrom("no route", "no (403)", "sign-in: refused", "");
  const record: fc.Arbitrary<Residue> = fc.oneof(
    what,
    fc
      .tuple(what, fc.constantFrom(...NOT_UNDONE.slice(0, 2)), why)
      .map(([one, how, said]) => ({ ...one, notUndone: { how, why: said } })),
  );
  const list = fc.array(record, { maxLength: 8 });
  /** As this version keeps it, as the one before did, and as both did in turn. */
  const kept = fc.tuple(list, fc.constantFrom("records", "lines", "both")).map(([residue, by]) => {
    const { residue: lines, residueRecords } = residueFacts(residue);
    const known = by === "lines" ? [] : by === "records" ? residueRecords : residueRecords.slice(1);
    return { lines, read: readResidue({ residue: lines, residueRecords: known }) };
  });
  const headOf = (one: Residue) => `${one.step}: ${one.what}`;

  test("are those that the version before took by lines, whichever of them kept the list", () => {
    fc.assert(
      fc.property(kept, fc.array(what), fc.array(fc.tuple(what, fc.boolean())), ({ lines, read }, done, undone) => {
        expect(residueLines(eachOnce(read))).toEqual(old.eachOnce(lines));
        expect(residueLines(withoutResidueOf(done, read))).toEqual(old.withoutResidueOf(done.map(headOf), lines));
        const once = [...new Map(undone.map(([one, isWhole]) => [headOf(one), { ...one, isWhole }])).entries()];
        expect(
          residueLines(
            withoutUndone(
              once.map(([, one]) => one),
              read,
            ),
          ),
        ).toEqual(old.withoutUndone(new Map(once.map(([head, { isWhole }]) => [head, isWhole])), lines));
      }),
      { numRuns: 500 },
    );
  });
});

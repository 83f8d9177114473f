import { appendFileSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openStateJournal } from "./state-journal.ts";
import { temporaryDataDir } from "./testing/temporary-simulator.ts";

describe("state journal", () => {
  test("whoever opens it later sees the last value of each key, whatever was put, deleted or compacted before", () => {
    const step = fc.tuple(fc.constantFrom("a", "b", "c"), fc.option(fc.integer(), { nil: null }));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        using dir = temporaryDataDir();
        const file = join(dir.path, "journal");
        const journal = openStateJournal(file, 5);
        const expected = new Map<string, number>();
        for (const [key, value] of steps) {
          if (value === null) journal.delete(key);
          else journal.put(key, value);
          if (value === null) expected.delete(key);
          else expected.set(key, value);
        }
        // Not closed: a killed process does not close either.
        const later = openStateJournal(file);
        expect(later.keys("").toSorted()).toEqual([...expected.keys()].toSorted());
        for (const [key, value] of expected) expect(later.get(key)).toBe(value);
        later.close();
        journal.close();
      }),
      { numRuns: 50 },
    );
  });

  test("a last line cut short by a kill is forgotten, and what follows is readable", () => {
    using dir = temporaryDataDir();
    const file = join(dir.path, "journal");
    writeFileSync(file, '["a",1]\n["b",');
    const journal = openStateJournal(file);
    journal.put("c", 3);
    journal.close();
    expect(readFileSync(file, "utf8")).toBe('["a",1]\n["c",3]\n');
  });

  test("an unreadable line within is refused by its number instead of silently dropping devices", () => {
    using dir = temporaryDataDir();
    const file = join(dir.path, "journal");
    writeFileSync(file, '["a",1]\n');
    appendFileSync(file, "not json\n");
    expect(() => openStateJournal(file)).toThrow(/line 2/);
  });

  test("it stays small however often one key is written", () => {
    using dir = temporaryDataDir();
    const file = join(dir.path, "journal");
    const journal = openStateJournal(file, 50);
    for (let count = 0; count < 1_000; count += 1) journal.put("a", count);
    journal.close();
    expect(statSync(file).size).toBeLessThan(1_000);
    expect(openStateJournal(file).get("a")).toBe(999);
  });
});

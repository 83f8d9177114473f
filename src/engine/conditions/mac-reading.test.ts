import { expect, test } from "vitest";
import { NOTHING_KNOWN } from "../../../test/support/unknown-machine.ts";
import { hours } from "../../kernel/time/duration.ts";
import { areMacsDue, newMacs } from "./mac-reading.ts";

const [A, B] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];
const knowing = (macs: readonly string[] | null) => ({ facts: { ...NOTHING_KNOWN, macs } });

// biome-ignore format: a table is read by its columns
test.each<[what: string, macs: readonly string[] | null, age: number | null, due: boolean]>([
  ["never asked",              null, null, true],
  ["forgotten since",          null, 0,    true],
  ["asked, and none named",    [],   0.5,  false],
  ["none named, an hour ago",  [],   1,    true],
  ["some named",               [A],  11,   false],
  ["some named, long ago",     [A],  12,   true],
  ["named to an older server", [A],  null, true],
])("MAC addresses that are %s are asked for: %#", (_, macs, age, due) => {
  expect(areMacsDue(knowing(macs), age === null ? null : hours(age))).toBe(due);
});

test("only what differs is learnt, and an empty answer is none", () => {
  expect(newMacs(knowing(null), [])).toEqual({ macs: [] });
  expect(newMacs(knowing(null), undefined)).toEqual({});
  expect(newMacs(knowing([A, B]), [B, A])).toEqual({});
  expect(newMacs(knowing([A, B]), [B])).toEqual({ macs: [B] });
  expect(newMacs(knowing([A, B]), [])).toEqual({});
  expect(newMacs(knowing([]), [A])).toEqual({ macs: [A] });
});

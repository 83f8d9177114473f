import { describe, expect, test } from "vitest";
import { describeIdentity, isContradicted } from "./boot-identity.ts";

const UUID = "0e9b0c3e-6a1c-4b53-9d1e-0a5f6d1c2b3a";
const SWAPPED = "3e0c9b0e-1c6a-534b-9d1e-0a5f6d1c2b3a";
const OTHER = "ffffffff-6a1c-4b53-9d1e-0a5f6d1c2b3a";

describe("a boot contradicts the machine of its MAC address", () => {
  // biome-ignore format: a table is read by its columns
  test.each<[what: string, told: [serial: string, uuid: string], known: [serial: string | null, uuid: string | null], contradicts: boolean]>([
    ["by another UUID",                       ["",          OTHER],              ["S1", UUID],      true],
    ["by another serial",                     ["S2",        ""],                 ["S1", UUID],      true],
    ["by both",                               ["S2",        OTHER],              ["S1", UUID],      true],
    ["not when the UUID is its own",          ["S2",        UUID],               ["S1", UUID],      false],
    ["not when the serial is its own",        [" s1 ",      OTHER],              ["S1", UUID],      false],
    ["not in the other byte order",           ["",          SWAPPED],            [null, UUID],      false],
    ["not in other letters",                  ["",          UUID.toUpperCase()], [null, UUID],      false],
    ["not when firmware says nothing",        ["",          ""],                 ["S1", UUID],      false],
    ["not when nothing is known",             ["S2",        OTHER],              [null, null],      false],
    ["not when they cannot be compared",      ["S2",        ""],                 [null, UUID],      false],
    ["not by a serial of the maker's mould",  ["To Be Filled By O.E.M.", ""],    ["S1", UUID],      false],
    ["not by what QEMU says",                 ["Not Specified", "00000000-0000-0000-0000-000000000000"], ["S1", UUID], false],
    ["not by a board's own UUID",             ["",          "03000200-0400-0500-0006-000700080009"], ["S1", UUID], false],
    ["not against such a one",                ["S2",        OTHER],              ["Default string", "00020003-0004-0005-0006-000700080009"], false],
    ["not by what is no UUID",                ["",          "u-1"],              ["S1", UUID],      false],
  ])("%s", (_, [serial, systemUuid], [knownSerial, knownUuid], contradicts) => {
    const known = { serials: [knownSerial, null], systemUuid: knownUuid };
    expect(isContradicted({ serial, systemUuid }, known)).toBe(contradicts);
  });

  test("not when the serial is the one that its BMC reports, though its owner gave another", () => {
    const known = { serials: ["chassis-7", "S1"], systemUuid: null };
    expect(isContradicted({ serial: "S1", systemUuid: "" }, known)).toBe(false);
    expect(isContradicted({ serial: "S3", systemUuid: "" }, known)).toBe(true);
  });
});

test("an identity is described by what it says", () => {
  expect(describeIdentity("S1", UUID)).toBe(`serial S1, UUID ${UUID}`);
  expect(describeIdentity("None", UUID)).toBe(`UUID ${UUID}`);
  expect(describeIdentity(null, "")).toBe("no serial and no UUID");
});

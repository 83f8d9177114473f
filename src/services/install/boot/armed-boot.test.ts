import { describe, expect, test } from "vitest";
import type { Boot } from "../../../store/install/installs.ts";
import { ARMED_FOR, type Asking, bootOf, isSamePlace } from "./armed-boot.ts";

const NOW = new Date("2026-03-01T12:00:00.000Z");
const hoursAgo = (hours: number) => new Date(NOW.getTime() - hours * 3_600_000);
const asking = (change: Partial<Asking> = {}): Asking => ({
  address: "10.0.0.7",
  identity: "s-1 u-1",
  binding: "subnet",
  mayMove: true,
  armedFor: ARMED_FOR,
  now: NOW,
  newId: () => "new",
  ...change,
});
const present: Boot = {
  id: "b1",
  armedBy: "approval",
  at: hoursAgo(1).toISOString(),
  address: "10.0.0.7",
  identity: "s-1 u-1",
  others: [],
  contestedAt: null,
  said: [],
};
const known = (change: Partial<Boot> = {}, armedAt: Date | null = null) => ({
  boot: { ...present, ...change },
  armedAt,
  armedBy: armedAt && "power",
});

describe("a boot that asks for its script", () => {
  test("is a new one where one is expected, and proves something only then", () => {
    expect(bootOf(known({}, hoursAgo(23)), asking())).toMatchObject({
      as: "new",
      boot: { id: "new", armedBy: "power" },
    });
    expect(bootOf(known({ at: hoursAgo(30).toISOString() }, hoursAgo(25)), asking())).toMatchObject({
      as: "new",
      boot: { armedBy: null },
    });
    expect(bootOf({ boot: null, armedAt: null, armedBy: null }, asking())).toMatchObject({ boot: { armedBy: null } });
  });

  test("again, from where it was, is the same", () => {
    expect(bootOf(known(), asking())).toEqual({ as: "same", boot: present });
    expect(bootOf(known(), asking({ address: "192.0.2.1", binding: "off" }))).toMatchObject({ as: "same" });
  });

  // biome-ignore format: a table is read by its columns
  test.each<[string, Partial<Asking>, Partial<Boot>, "same" | "contested"]>([
    ["its lease changed, and it is the same hardware",     { address: "10.0.0.9" },                         {},                               "same"],
    ["the lease is of another network",                    { address: "10.0.1.7" },                         {},                               "contested"],
    ["the hardware is another",                            { address: "10.0.0.9", identity: "s-2" },        {},                               "contested"],
    ["nobody said what hardware it is",                    { address: "10.0.0.9", identity: "" },           { identity: "" },                 "contested"],
    ["addresses count one by one",                         { address: "10.0.0.9", binding: "address" },     {},                               "contested"],
    ["its disks are to be erased",                         { address: "10.0.0.9", mayMove: false },         {},                               "contested"],
    ["two have asked already",                             { address: "10.0.0.9" },                         { others: ["x"], contestedAt: "t" }, "contested"],
  ])("from another address: %s", (_, change, before, as) => {
    expect(bootOf(known(before), asking(change)).as).toBe(as);
  });

  test("that is contested stays so, lists each address once, and only so many", () => {
    const first = bootOf(known(), asking({ address: "192.0.2.1" })).boot;
    expect(first).toMatchObject({ others: ["192.0.2.1"], contestedAt: NOW.toISOString(), address: "10.0.0.7" });
    let boot = first;
    for (let nth = 1; nth < 20; nth += 1) boot = bootOf(known(boot), asking({ address: `192.0.2.${nth}` })).boot;
    expect(boot.others).toHaveLength(8);
    expect(boot.contestedAt).toBe(first.contestedAt);
  });
});

test.each([
  ["10.0.0.7", "10.0.0.200", true],
  ["10.0.0.7", "10.0.1.7", false],
  ["fd00:1:2:3::1", "fd00:1:2:3:aaaa::9", true],
  ["fd00:1:2:3::1", "fd00:1:2:4::1", false],
  ["fe80::1%eth0", "fe80::2%eth1", true],
  ["10.0.0.7", "::1", false],
  ["no address", "nor this", false],
])("%s and %s are one subnet: %s", (one, other, is) => {
  expect(isSamePlace(one, other, "subnet")).toBe(is);
  expect(isSamePlace(one, other, "address")).toBe(false);
  expect(isSamePlace(one, one, "address")).toBe(true);
});

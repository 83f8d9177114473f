import { expect, test } from "vitest";
import { aProfile, wholeRack } from "../../../test/support/racks/whole-rack.ts";
import { describeUnready, failedMembers, isDiscovered } from "./members.ts";
import type { Tray } from "./rack.ts";

test("a rack tells which of its devices are not ready, and how many are not on record", () => {
  const [tray] = wholeRack("discovering").trays as readonly [Tray];
  const [good, other] = [
    { ...tray, id: "m2" },
    { ...tray, id: "m3" },
  ];
  const failed = { ...tray, ready: false, reprovision: "failed_firmware_upgrade" };
  const profile = { ...aProfile, compute: { ...aProfile.compute, count: 3 } };
  const unready = (trays: readonly Tray[]) => describeUnready(wholeRack("discovering", { profile, trays }));
  expect(unready([failed, good, other])).toBe("2 of 3 compute trays are ready: m1 (failed_firmware_upgrade)");
  expect(unready([failed, good])).toBe("1 of 3 compute trays are ready: m1 (failed_firmware_upgrade); 1 not on record");
  expect(unready([good])).toBe("1 of 3 compute trays are ready: 2 not on record");
});

test("a rack waits for no tray that is in MAAS, and no such tray is its failure", () => {
  const [tray] = wholeRack("discovering").trays as readonly [Tray];
  const kept = {
    ...tray,
    id: "m2",
    assigned: "unknown",
    exhausted: true,
    reprovision: "failed_firmware_upgrade",
  } as const;
  const profile = { ...aProfile, compute: { ...aProfile.compute, count: 2 } };
  const rack = (inMaas: boolean) => wholeRack("discovering", { profile, trays: [tray, { ...kept, inMaas }] });
  expect(isDiscovered(rack(true))).toBe(true);
  expect(isDiscovered(rack(false))).toBe(false);
  expect([describeUnready(rack(true)), failedMembers(rack(true))]).toEqual(["", []]);
  expect(failedMembers(rack(false))).toHaveLength(1);
});

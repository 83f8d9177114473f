import { expect, test } from "vitest";
import { placeOf } from "./inventory.ts";

test.each([
  [{ Location: { PartLocation: { LocationOrdinalValue: 11 } }, Oem: { Nvidia: { TrayIndex: 3 } } }, 11, 3],
  [{ Oem: { Nvidia: { ChassisPhysicalSlotNumber: 12, ComputeTrayIndex: 0 } } }, 12, 0],
  [{ Oem: { Nvidia: { TrayIndex: "3" } } }, null, null],
  [{ Location: { PartLocation: { LocationOrdinalValue: -1 } } }, null, null],
  [{}, null, null],
])("a chassis that says %j is in slot %s, as number %s of its kind", (chassis, slot, trayIndex) => {
  expect(placeOf(chassis)).toEqual({ slot, trayIndex });
});

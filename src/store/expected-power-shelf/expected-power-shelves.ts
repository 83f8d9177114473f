import { expectedPowerShelfLifecycle } from "../../lifecycles/expected-power-shelf/lifecycle.ts";
import { powerShelfLifecycle } from "../../lifecycles/power-shelf/lifecycle.ts";
import { defineExpectedDevices, type ExpectedDeviceRecord } from "../expected-device/expected-devices.ts";

export type ExpectedPowerShelfRecord = ExpectedDeviceRecord;

export const expectedPowerShelves = defineExpectedDevices<object>({
  lifecycle: expectedPowerShelfLifecycle,
  table: "expected_power_shelves",
  serialColumn: "shelf_serial_number",
  link: "powerShelfId",
  device: { kind: powerShelfLifecycle.kind, table: "power_shelves" },
  parse: () => ({}),
});
export const { store: expectedPowerShelfStore, list: listExpectedPowerShelves } = expectedPowerShelves;

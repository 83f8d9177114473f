import { expectedDeviceFields, linkedField } from "../expected-device/expected-device-fields.ts";
import type { ExpectedRow } from "../expected-device/expected-devices.ts";
import { createListing } from "../postgres/listing.ts";
import { type ExpectedPowerShelfRecord, expectedPowerShelves } from "./expected-power-shelves.ts";

const FIELDS = {
  ...expectedDeviceFields("shelf_serial_number"),
  power_shelf_id: linkedField("powerShelfId", "power shelf"),
};

export type ExpectedPowerShelfField = keyof typeof FIELDS & string;

/** In the order of their MAC addresses. */
export const expectedPowerShelfListing = createListing<ExpectedPowerShelfField, ExpectedPowerShelfRecord, ExpectedRow>({
  name: "expected power shelves",
  kind: "expected_power_shelf",
  fields: FIELDS,
  id: "bmc_mac",
  idOf: (row) => row.bmc_mac,
  columns: expectedPowerShelves.columns,
  from: expectedPowerShelves.from,
  countFrom: expectedPowerShelves.countFrom,
  parse: expectedPowerShelves.parse,
});

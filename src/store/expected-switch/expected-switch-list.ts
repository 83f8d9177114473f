import { expectedDeviceFields, linkedField } from "../expected-device/expected-device-fields.ts";
import type { ExpectedRow } from "../expected-device/expected-devices.ts";
import { createListing } from "../postgres/listing.ts";
import { type ExpectedSwitchRecord, expectedSwitches } from "./expected-switches.ts";

const FIELDS = {
  ...expectedDeviceFields("switch_serial_number"),
  switch_id: linkedField("switchId", "switch"),
};

export type ExpectedSwitchField = keyof typeof FIELDS & string;

/** In the order of their MAC addresses. */
export const expectedSwitchListing = createListing<ExpectedSwitchField, ExpectedSwitchRecord, ExpectedRow>({
  name: "expected switches",
  kind: "expected_switch",
  fields: FIELDS,
  id: "bmc_mac",
  idOf: (row) => row.bmc_mac,
  columns: expectedSwitches.columns,
  from: expectedSwitches.from,
  countFrom: expectedSwitches.countFrom,
  parse: expectedSwitches.parse,
});

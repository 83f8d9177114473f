import { parsePowerShelfId } from "../../kernel/ids.ts";
import { expectedPowerShelfListing } from "../../store/expected-power-shelf/expected-power-shelf-list.ts";
import {
  type ExpectedPowerShelfRecord,
  listExpectedPowerShelves,
} from "../../store/expected-power-shelf/expected-power-shelves.ts";
import { findShelvesOfBmcs, listPowerShelves } from "../../store/power-shelf/power-shelves.ts";
import { expectedServices } from "../expected-device/expected-devices.ts";
import type { ExpectedInput } from "../expected-device/input.ts";

export type { ExpectedPowerShelfRecord } from "../../store/expected-power-shelf/expected-power-shelves.ts";

export const {
  add: addExpectedPowerShelf,
  update: updateExpectedPowerShelf,
  remove: deleteExpectedPowerShelf,
  removeAll: deleteAllExpectedPowerShelves,
  replaceAll: replaceAllExpectedPowerShelves,
  get: getExpectedPowerShelf,
  listAll: listAllExpectedPowerShelves,
  page: pageExpectedPowerShelves,
} = expectedServices<ExpectedPowerShelfRecord, ExpectedInput>({
  kind: "expected_power_shelf",
  device: "power_shelf",
  nouns: { row: "expected power shelf", device: "power shelf", devices: "power shelves" },
  command: "expected-power-shelf",
  fields: { id: "expected_power_shelf_id", serial: "shelf_serial_number", list: "expected_power_shelves" },
  list: listExpectedPowerShelves,
  listing: expectedPowerShelfListing,
  linkField: "power_shelf_id",
  parseDeviceId: parsePowerShelfId,
  findDevicesOfBmcs: findShelvesOfBmcs,
  listDevices: (db, ids) => listPowerShelves(db, { ids }),
});

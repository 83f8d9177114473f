import { powerShelfLifecycle } from "../../lifecycles/power-shelf/lifecycle.ts";
import { bmcDeviceFields } from "../device/bmc-device-fields.ts";
import type { BmcDeviceRecordRow } from "../device/bmc-devices.ts";
import { defineFields, numberFactSql } from "../postgres/list-fields.ts";
import { createListing } from "../postgres/listing.ts";
import { type PowerShelfRecord, powerShelves } from "./power-shelves.ts";

// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<PowerShelfRecord>()({
  ...bmcDeviceFields(powerShelfLifecycle, { noun: "shelf", nouns: "shelves" }),
  capacity_watts: { type: "number", sql: numberFactSql("capacityWatts"), sort: "nullable", doc: "What it can deliver, where it says.", of: ({ facts }) => facts.capacityWatts },
});

export type PowerShelfField = keyof typeof FIELDS & string;

export const powerShelfListing = createListing<PowerShelfField, PowerShelfRecord, BmcDeviceRecordRow>({
  name: "power shelves",
  kind: "power_shelf",
  fields: FIELDS,
  id: "id",
  columns: powerShelves.columns,
  from: powerShelves.from,
  countFrom: powerShelves.countFrom,
  parse: powerShelves.parse,
});

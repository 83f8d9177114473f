import { switchLifecycle } from "../../lifecycles/switch/lifecycle.ts";
import { bmcDeviceFields, FLAG, flagSql } from "../device/bmc-device-fields.ts";
import type { BmcDeviceRecordRow } from "../device/bmc-devices.ts";
import { macSpelling } from "../device/mac-spelling.ts";
import { defineFields, numberFactSql } from "../postgres/list-fields.ts";
import { createListing } from "../postgres/listing.ts";
import { type SwitchRecord, switches } from "./switches.ts";

// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<SwitchRecord>()({
  ...bmcDeviceFields(switchLifecycle, { noun: "switch", nouns: "switches" }),
  slot_number: { type: "number", sql: numberFactSql("slotNumber"), sort: "nullable", doc: "The slot that it stands in, where its BMC says.", of: ({ facts }) => facts.slotNumber },
  tray_index:  { type: "number", sql: numberFactSql("trayIndex"), sort: "nullable", doc: "Its place among the switches of the rack.", of: ({ facts }) => facts.trayIndex },
  primary:     { type: FLAG, sql: flagSql("t.facts -> 'isPrimary' = 'true'"), doc: "The fabric of the rack is configured on it.", of: ({ facts }) => String(facts.isPrimary) },
  fabric:      { type: ["ok", "not_ok", "unknown"], sql: "coalesce(t.facts -> 'fabric' ->> 'state', 'unknown')", doc: "As its fabric manager said last.", of: ({ facts }) => facts.fabric?.state ?? "unknown" },
  nvos_mac:    { type: { ...macSpelling, tags: true }, sql: "t.nvos_macs", doc: "A MAC address of its operating system, in any notation.", of: ({ nvosMacs }) => nvosMacs },
});

export type SwitchField = keyof typeof FIELDS & string;

export const switchListing = createListing<SwitchField, SwitchRecord, BmcDeviceRecordRow>({
  name: "switches",
  kind: "switch",
  fields: FIELDS,
  id: "id",
  columns: switches.columns,
  from: switches.from,
  countFrom: switches.countFrom,
  parse: switches.parse,
});

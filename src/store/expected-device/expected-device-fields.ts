import { CAUSE_WORDS } from "../../kernel/causes.ts";
import { EXPLORE_RESULTS } from "../../lifecycles/expected-device/expected-device.ts";
import { macSpelling } from "../device/mac-spelling.ts";
import { defineFields } from "../postgres/list-fields.ts";
import { EXPLORED, type ExpectedDeviceRecord } from "./expected-devices.ts";

/** What lists of expected devices of every kind are filtered and sorted by. */
// biome-ignore format: a table is read by its columns
export const expectedDeviceFields = (serialColumn: string) => defineFields<ExpectedDeviceRecord>()({
  id:             { type: "text", sql: "t.id", sort: "set", doc: "The row's id.", of: ({ id }) => id },
  bmc_mac:        { type: macSpelling, sql: "t.bmc_mac", sort: "set", doc: "MAC address of the BMC, in any notation.", of: ({ bmc }) => bmc.mac },
  bmc_address:    { type: "text", sql: "t.bmc_address", sort: "nullable", doc: "Where the BMC is, without the port.", of: ({ bmc }) => bmc.address },
  name:           { type: "text", sql: "t.name", sort: "set", doc: "What people call it.", of: ({ name }) => name },
  description:    { type: "text", sql: "t.description", doc: "What people say about it.", of: ({ description }) => description },
  serial:         { type: "text", sql: `t.${serialColumn}`, sort: "set", doc: "The serial number that it is to have.", of: ({ serial }) => serial },
  rack_id:        { type: "text", sql: "t.rack_id", sort: "nullable", doc: "The rack that it stands in.", of: ({ rackId }) => rackId },
  rack:           { type: "text", sql: "t.rack_id", sort: "nullable", doc: "The same as `rack_id`: its name in the list of machines.", of: ({ rackId }) => rackId },
  explore_state:  { type: EXPLORE_RESULTS, sql: `(${EXPLORED})`, sort: "set", doc: "How finding it goes.", of: ({ explored }) => explored },
  cause:          { type: CAUSE_WORDS, sql: "coalesce(t.outcome -> 'cause' ->> 'code', '')", doc: "Why finding it fails, or what it waits for: a cause; empty where nothing is wrong.", of: ({ outcome }) => outcome?.cause?.code ?? "" },
  explored_at:    { type: "time", sql: { isoTime: "(t.facts ->> 'exploredAt')" }, sort: "nullable", doc: "When its BMC was last contacted.", of: ({ facts }) => (facts.exploredAt === null ? null : new Date(facts.exploredAt)) },
  created_at:     { type: "time", sql: "t.created_at", sort: "set", doc: "When it was put on record.", of: ({ createdAt }) => createdAt },
  labels:         { type: "labels", sql: "t.labels", sort: "nullable", doc: "A label, by its key; one without a value is as one that is not there.", of: ({ labels }, key) => (Object.hasOwn(labels, key) ? (labels[key] ?? null) : null) },
});

/** The device that was made from a row; only a row that is linked has become one. */
export const linkedField = (link: string, noun: string) =>
  ({
    type: "text",
    sql: `(case when t.state = 'linked' then t.facts ->> '${link}' end)`,
    sort: "nullable",
    doc: `The ${noun} that was made from it.`,
    of: ({ state, deviceId }: ExpectedDeviceRecord) => (state.name === "linked" ? deviceId : null),
  }) as const;

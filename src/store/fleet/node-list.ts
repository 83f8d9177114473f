import { FLEET_MODES } from "../../lifecycles/fleet-node/fleet-node.ts";
import { FLEET_NODE_STATES } from "../../lifecycles/fleet-node/lifecycle.ts";
import { defineFields } from "../postgres/list-fields.ts";
import { createListing } from "../postgres/listing.ts";
import { FLEET_NODE_COLUMNS, type FleetNodeRecord, type FleetNodeRow, parseFleetNode } from "./nodes.ts";

/** The inventory view: the coarse words of the nodes' states, and nothing finer. */
// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<FleetNodeRecord>()({
  node_id:           { type: "text", sql: "t.id", sort: "set", doc: "The node's id.", of: ({ id }) => id },
  hostname:          { type: "text", sql: "t.hostname", sort: "set", doc: "Its host name.", of: ({ hostname }) => hostname },
  site:              { type: "text", sql: "t.site", sort: "set", doc: "The MAAS site that it is onboarded through.", of: ({ site }) => site },
  profile:           { type: "text", sql: "t.profile", sort: "set", doc: "The profile of the site by which it is brought up.", of: ({ profile }) => profile },
  sku:               { type: "text", sql: "t.sku", sort: "set", doc: "What it is sold as.", of: ({ sku }) => sku },
  mode:              { type: FLEET_MODES, sql: "t.mode", sort: "set", doc: "Who brings it up.", of: ({ mode }) => mode },
  state:             { type: FLEET_NODE_STATES, sql: "t.state", sort: "set", doc: "The state of its lifecycle.", of: ({ state }) => state.name },
  machine_id:        { type: "text", sql: "t.machine_id", sort: "set", doc: "The machine of the inventory that it is.", of: ({ machineId }) => machineId },
  ipmi_ip:           { type: "text", sql: "t.ipmi_ip", sort: "nullable", doc: "The address of its management controller.", of: ({ ipmiIp }) => ipmiIp },
  system_id:         { type: "text", sql: "(t.facts ->> 'systemId')", doc: "The machine in MAAS that it is bound to.", of: ({ facts }) => facts.systemId },
  quarantine_reason: { type: "text", sql: "(t.facts ->> 'quarantineReason')", doc: "Why it is quarantined.", of: ({ facts }) => facts.quarantineReason },
  created_at:        { type: "time", sql: "t.created_at", sort: "set", doc: "When it was put on record.", of: ({ createdAt }) => createdAt },
  state_since:       { type: "time", sql: "t.state_since", sort: "set", doc: "Since when it is in its state.", of: ({ stateSince }) => stateSince },
});

export type FleetNodeField = keyof typeof FIELDS & string;

export const fleetNodeListing = createListing<FleetNodeField, FleetNodeRecord, FleetNodeRow>({
  name: "fleet_nodes",
  kind: "fleet_node",
  fields: FIELDS,
  id: "node_id",
  columns: FLEET_NODE_COLUMNS,
  from: "fleet_nodes t",
  parse: parseFleetNode,
});

import { ARCHITECTURES, BOOT_MODES, INSTALL_STATES } from "../../lifecycles/install/install.ts";
import { macSpelling } from "../device/mac-spelling.ts";
import { defineFields, numberFactSql } from "../postgres/list-fields.ts";
import { createListing } from "../postgres/listing.ts";
import { INSTALL_COLUMNS, INSTALL_FROM, type InstallRecord, type InstallRow, parseInstall } from "./installs.ts";

const factSql = (name: string): string => `(t.facts ->> '${name}')`;

/** In the words of the REST API. */
// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<InstallRecord>()({
  id:                    { type: "text", sql: "t.id", sort: "set", doc: "The node's id: that of its machine.", of: ({ id }) => id },
  mac_address:           { type: macSpelling, sql: "t.mac", sort: "set", doc: "The address that it boots with, in any notation.", of: ({ mac }) => mac },
  hostname:              { type: "text", sql: factSql("hostname"), sort: "nullable", doc: "Its name.", of: ({ facts }) => facts.hostname },
  ip_address:            { type: "text", sql: factSql("ipAddress"), doc: "As it reported last.", of: ({ facts }) => facts.ipAddress },
  state:                 { type: INSTALL_STATES, sql: "t.state", sort: "set", doc: "Its state in the lifecycle install.", of: ({ state }) => state.name },
  state_changed_at:      { type: "time", sql: "t.state_since", sort: "set", doc: "Since when it is in its state.", of: ({ stateSince }) => stateSince },
  workflow_id:           { type: "text", sql: "t.workflow_id", sort: "nullable", doc: "Its own workflow.", of: ({ workflowId }) => workflowId },
  effective_workflow_id: { type: "text", sql: "coalesce(t.workflow_id, g.effective_workflow_id)", sort: "nullable", doc: "Its own workflow, or the one that its groups give it.", of: ({ effectiveWorkflowId }) => effectiveWorkflowId },
  group_id:              { type: "text", sql: "t.group_id", sort: "nullable", doc: "The group that it is in.", of: ({ groupId }) => groupId },
  tag:                   { type: { spell: (text: string) => text.toLowerCase(), tags: true }, sql: "t.tags", doc: "One of its tags, in any case.", of: ({ tags }) => tags },
  vendor:                { type: "text", sql: factSql("vendor"), sort: "nullable", doc: "As it reported, or people said.", of: ({ facts }) => facts.vendor },
  model:                 { type: "text", sql: factSql("model"), sort: "nullable", doc: "As it reported, or people said.", of: ({ facts }) => facts.model },
  serial_number:         { type: "text", sql: factSql("serialNumber"), sort: "nullable", doc: "As it reported, or people said.", of: ({ facts }) => facts.serialNumber },
  system_uuid:           { type: "text", sql: factSql("systemUuid"), doc: "As it reported, or people said.", of: ({ facts }) => facts.systemUuid },
  arch:                  { type: ARCHITECTURES, sql: "t.arch", sort: "set", doc: "Its architecture.", of: ({ arch }) => arch },
  boot_mode:             { type: BOOT_MODES, sql: "t.boot_mode", sort: "set", doc: "How its firmware boots.", of: ({ bootMode }) => bootMode },
  install_attempts:      { type: "number", sql: `coalesce(${numberFactSql("installAttempts")}, 0)`, sort: "set", doc: "Attempts that failed since the counter was last reset.", of: ({ facts }) => facts.installAttempts },
  last_install_error:    { type: "text", sql: factSql("lastInstallError"), doc: "Why the last attempt failed.", of: ({ facts }) => facts.lastInstallError },
  created_at:            { type: "time", sql: "t.created_at", sort: "set", doc: "When it was put on record.", of: ({ createdAt }) => createdAt },
  updated_at:            { type: "time", sql: "t.updated_at", sort: "set", doc: "When anything about it changed last.", of: ({ updatedAt }) => updatedAt },
  last_seen_at:          { type: "time", sql: { isoTime: factSql("lastSeenAt") }, sort: "nullable", doc: "When it last booted from the network or reported.", of: ({ facts }) => facts.lastSeenAt },
});

export type InstallField = keyof typeof FIELDS & string;

/** The oldest first. */
export const installListing = createListing<InstallField, InstallRecord, InstallRow>({
  name: "nodes",
  kind: "install",
  fields: FIELDS,
  id: "id",
  order: [{ field: "created_at", descending: false }],
  columns: INSTALL_COLUMNS,
  from: INSTALL_FROM,
  countFrom: "installs t left join device_groups g on g.id = t.group_id",
  parse: parseInstall,
});

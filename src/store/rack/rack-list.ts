import { CAUSE_WORDS } from "../../kernel/causes.ts";
import { parseCause } from "../../kernel/stored-cause.ts";
import { rackLifecycle } from "../../lifecycles/rack/lifecycle.ts";
import { FAILING_SQL, FLAG, flagSql, isFailing, isStuckDevice, stuckSql } from "../device/bmc-device-fields.ts";
import { defineFields } from "../postgres/list-fields.ts";
import { createListing } from "../postgres/listing.ts";
import { parseRecord, type RackRecord, RECORD_COLUMNS, RECORD_FROM, type RecordRow, rackStore } from "./racks.ts";

const STATES = Object.keys(rackLifecycle.states);

/** Without a profile nobody wants a new rack to become anything: it may stay as it is. So may one that waits for its turn. */
export const hasSla = ({ state, profileId, outcome }: Pick<RackRecord, "state" | "profileId" | "outcome">): boolean =>
  (state.name !== "created" || profileId !== null) && outcome?.cause?.code !== "maintenance_limit";

/** The rack needs attention: it is in error, waits for a person, is above its SLA, or has been failing for longer than is tolerated. */
export const isStuckRack = (rack: RackRecord, now: Date): boolean =>
  isStuckDevice(rackLifecycle, hasSla(rack) ? rack : { ...rack, stateSince: now }, now);
const STUCK = stuckSql(rackLifecycle, rackStore.slaCounts);

/** Which racks somebody should look at first. 3: stuck; 2: its last pass failed; 1: at work, or something is requested of it; 0: at rest. */
export function urgencyOf(rack: RackRecord, now: Date): number {
  if (isStuckRack(rack, now)) return 3;
  if (isFailing(rack)) return 2;
  return rack.state.name !== "ready" || pendingOf(rack) !== "none" ? 1 : 0;
}
const URGENCY = `(case when ${STUCK} then 3 when ${FAILING_SQL} then 2
  when t.state <> 'ready' or t.maintenance_requested is not null or t.reprovision_requested is not null then 1 else 0 end)`;

/** A reprovision comes first, and ends a maintenance that waits. */
const pendingOf = ({ maintenanceRequest, reprovisionRequest }: RackRecord): string =>
  reprovisionRequest !== null ? "reprovision" : maintenanceRequest !== null ? "maintenance" : "none";
const PENDING = `(case when t.reprovision_requested is not null then 'reprovision'
  when t.maintenance_requested is not null then 'maintenance' else 'none' end)`;

const causeOfRack = ({ outcome, state }: RackRecord): string =>
  (outcome?.cause ?? parseCause(state.failure))?.code ?? "";
const CAUSE = `coalesce(t.outcome -> 'cause' ->> 'code', t.state_data -> 'failure' ->> 'code', '')`;

// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<RackRecord>()({
  id:          { type: "text", sql: "t.id", sort: "set", doc: "The rack's id.", of: ({ id }) => id },
  name:        { type: "text", sql: "t.name", sort: "set", doc: "What people call it.", of: ({ name }) => name },
  description: { type: "text", sql: "t.description", doc: "What people say about it.", of: ({ description }) => description },
  profile:     { type: "text", sql: "t.rack_profile_id", sort: "nullable", doc: "The profile that says what it consists of.", of: ({ profileId }) => profileId },
  state:       { type: STATES, sql: "t.state", sort: "set", doc: "Its state in the lifecycle rack.", of: ({ state }) => state.name },
  state_since: { type: "time", sql: "t.state_since", sort: "set", doc: "Since when it is in its state.", of: ({ stateSince }) => stateSince },
  activity:    { type: "text", sql: "(t.state_data ->> 'activity')", doc: "While maintenance: what is being done.", of: ({ state }) => state.activity ?? null },
  stuck:       { type: FLAG, sql: flagSql(STUCK), doc: "It needs attention.", of: (rack, _, now) => String(isStuckRack(rack, now)) },
  failing:     { type: FLAG, sql: flagSql(FAILING_SQL), doc: "The last pass failed.", of: (rack) => String(isFailing(rack)) },
  urgency:     { type: "number", sql: URGENCY, sort: "set", doc: "Which racks to check first: 3 it needs attention, 2 its last pass failed, 1 it is at work or something is requested of it, 0 it is at rest.", of: (rack, _, now) => urgencyOf(rack, now) },
  pending:     { type: ["maintenance", "reprovision", "none"], sql: PENDING, doc: "The request that waits or is carried out.", of: pendingOf },
  cause:       { type: CAUSE_WORDS, sql: CAUSE, doc: "What it waits for, or why it is in error: a cause; empty where nothing is wrong.", of: causeOfRack },
  deleted:     { type: FLAG, sql: flagSql("t.deleted_at is not null"), doc: "It is marked for deletion.", of: ({ deletedAt }) => String(deletedAt !== null) },
  created_at:  { type: "time", sql: "t.created_at", sort: "set", doc: "When it was put on record.", of: ({ createdAt }) => createdAt },
  labels:      { type: "labels", sql: "t.labels", sort: "nullable", doc: "A label, by its key; one without a value is as one that is not there.", of: ({ labels }, key) => (Object.hasOwn(labels, key) ? (labels[key] ?? null) : null) },
});

export type RackField = keyof typeof FIELDS & string;

export const rackListing = createListing<RackField, RackRecord, RecordRow>({
  name: "racks",
  kind: "rack",
  fields: FIELDS,
  id: "id",
  columns: RECORD_COLUMNS,
  from: RECORD_FROM,
  parse: parseRecord,
});

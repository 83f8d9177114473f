import { CAUSE_WORDS } from "../../kernel/causes.ts";
import { isStuck } from "../../kernel/decide.ts";
import { parseCause } from "../../kernel/stored-cause.ts";
import { rackLifecycle } from "../../lifecycles/rack/lifecycle.ts";
import { defineFields } from "../postgres/list-fields.ts";
import { createListing } from "../postgres/listing.ts";
import { parseRecord, type RackRecord, RECORD_COLUMNS, RECORD_FROM, type RecordRow } from "./racks.ts";

const STATES = Object.keys(rackLifecycle.states);
const FLAG = ["true", "false"] as const;
const flagSql = (condition: string): string => `(case when ${condition} then 'true' else 'false' end)`;

/** The rack needs attention: it is in error, or above its SLA. */
const isStuckRack = (rack: RackRecord, now: Date): boolean =>
  isStuck(rackLifecycle, rack, now) || rack.state.name === "error";
/** The same in SQL, from the lifecycle's own SLAs. */
const LATE = Object.entries(rackLifecycle.states).flatMap(([name, spec]) =>
  "sla" in spec ? [`(t.state = '${name}' and t.state_since < now() - interval '${spec.sla} ms')`] : [],
);
const STUCK = `(${[...LATE, "t.state = 'error'"].join(" or ")})`;

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
  stuck:       { type: FLAG, sql: flagSql(STUCK), doc: "Somebody should look at it.", of: (rack, _, now) => String(isStuckRack(rack, now)) },
  cause:       { type: CAUSE_WORDS, sql: CAUSE, doc: "What it waits for, or why it is in error: a cause; empty where nothing is wrong.", of: causeOfRack },
  deleted:     { type: FLAG, sql: flagSql("t.deleted_at is not null"), doc: "It is marked for deletion.", of: ({ deletedAt }) => String(deletedAt !== null) },
  created_at:  { type: "time", sql: "t.created_at", sort: "set", doc: "When it was put on record.", of: ({ createdAt }) => createdAt },
  labels:      { type: "labels", sql: "t.labels", sort: "nullable", doc: "A label, by its key; one without a value is as one that is not there.", of: ({ labels }, key) => (Object.hasOwn(labels, key) ? (labels[key] ?? null) : null) },
});

export type RackField = keyof typeof FIELDS & string;

export const rackListing = createListing<RackField, RackRecord, RecordRow>({
  name: "racks",
  fields: FIELDS,
  id: "id",
  columns: RECORD_COLUMNS,
  from: RECORD_FROM,
  countFrom: "racks t",
  parse: parseRecord,
});

import { POWER_STATES } from "../../capabilities/power-control.ts";
import { CAUSE_WORDS } from "../../kernel/causes.ts";
import { isStuck } from "../../kernel/decide.ts";
import { parseCause } from "../../kernel/stored-cause.ts";
import { type Duration, minutes } from "../../kernel/time/duration.ts";
import { powerShelfLifecycle } from "../../lifecycles/power-shelf/lifecycle.ts";
import { macSpelling } from "../device/mac-spelling.ts";
import { defineFields, numberFactSql } from "../postgres/list-fields.ts";
import { createListing } from "../postgres/listing.ts";
import { type PowerShelfRecord, parseRecord, RECORD_COLUMNS, RECORD_FROM, type RecordRow } from "./power-shelves.ts";

const STATES = Object.keys(powerShelfLifecycle.states);
const FLAG = ["true", "false"] as const;
const flagSql = (condition: string): string => `(case when ${condition} then 'true' else 'false' end)`;

/** For how long a shelf may fail before somebody should look: one lost packet is no news. */
const FAILING_TOLERATED: Duration = minutes(1);

/** The last pass failed. A pass can fail before the shelf could say so; then the work alone knows. */
export const isFailingShelf = ({ outcome, lastError }: PowerShelfRecord): boolean =>
  outcome === null ? lastError !== null : outcome.type !== "waiting";
const FAILING = `(t.outcome ->> 'type' in ('failing', 'needs_intervention') or (t.outcome is null and w.last_error is not null))`;

/** Since when passes fail; null while they do not, and where it is not known. */
export function failingSinceOf(shelf: PowerShelfRecord): Date | null {
  const since = isFailingShelf(shelf) ? shelf.outcome?.since : undefined;
  return since === undefined ? null : new Date(since);
}

/** The shelf needs attention: in error, waiting for a person, above its SLA, or failing for longer than is tolerated. */
export function isStuckShelf(shelf: PowerShelfRecord, now: Date): boolean {
  const since = failingSinceOf(shelf);
  const failsTooLong = since !== null && now.getTime() - since.getTime() > FAILING_TOLERATED;
  const needsPerson = shelf.outcome?.type === "needs_intervention";
  return isStuck(powerShelfLifecycle, shelf, now) || shelf.state.name === "error" || needsPerson || failsTooLong;
}

/** The same in SQL, from the lifecycle's own SLAs. */
const LATE = Object.entries(powerShelfLifecycle.states).flatMap(([name, spec]) =>
  "sla" in spec ? [`(t.state = '${name}' and t.state_since < now() - interval '${spec.sla} ms')`] : [],
);
const FAILS_TOO_LONG = `(t.outcome ->> 'type' = 'failing'
  and (t.outcome ->> 'since')::timestamptz < now() - interval '${FAILING_TOLERATED} ms')`;
const STUCK = `(${[...LATE, "t.state = 'error'", "t.outcome ->> 'type' = 'needs_intervention'", FAILS_TOO_LONG].join(" or ")})`;

const causeOfShelf = ({ outcome, state }: PowerShelfRecord): string =>
  (outcome?.cause ?? parseCause(state.failure))?.code ?? "";
const CAUSE = `coalesce(t.outcome -> 'cause' ->> 'code', t.state_data -> 'failure' ->> 'code', '')`;

// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<PowerShelfRecord>()({
  id:             { type: "text", sql: "t.id", sort: "set", doc: "The shelf's id.", of: ({ id }) => id },
  name:           { type: "text", sql: "t.name", sort: "set", doc: "What people call it.", of: ({ name }) => name },
  description:    { type: "text", sql: "t.description", doc: "What people say about it.", of: ({ description }) => description },
  rack_id:        { type: "text", sql: "t.rack_id", sort: "nullable", doc: "The rack that it stands in.", of: ({ rackId }) => rackId },
  state:          { type: STATES, sql: "t.state", sort: "set", doc: "Its state in the lifecycle power_shelf.", of: ({ state }) => state.name },
  state_since:    { type: "time", sql: "t.state_since", sort: "set", doc: "Since when it is in its state.", of: ({ stateSince }) => stateSince },
  power_state:    { type: POWER_STATES, sql: "coalesce(t.facts ->> 'powerState', 'unknown')", sort: "set", doc: "As its BMC said last.", of: ({ facts }) => facts.powerState ?? "unknown" },
  health_status:  { type: ["ok", "warning", "critical", "unknown"], sql: "coalesce(t.facts ->> 'health', 'unknown')", doc: "As its BMC says; health reports of others are not in it.", of: ({ facts }) => facts.health ?? "unknown" },
  stuck:          { type: FLAG, sql: flagSql(STUCK), doc: "Somebody should look at it.", of: (shelf, _, now) => String(isStuckShelf(shelf, now)) },
  failing:        { type: FLAG, sql: flagSql(FAILING), doc: "The last pass failed.", of: (shelf) => String(isFailingShelf(shelf)) },
  cause:          { type: CAUSE_WORDS, sql: CAUSE, doc: "Why its last pass failed or what it waits for, or why it is in error: a cause; empty where nothing is wrong.", of: causeOfShelf },
  deleted:        { type: FLAG, sql: flagSql("t.deleted_at is not null"), doc: "It is marked for deletion. Such shelves are left out unless the filter says `deleted` or `deleted_at`, or the request says so.", of: ({ deletedAt }) => String(deletedAt !== null) },
  deleted_at:     { type: "time", sql: "t.deleted_at", sort: "nullable", doc: "When it was marked for deletion.", of: ({ deletedAt }) => deletedAt },
  bmc_mac:        { type: macSpelling, sql: "t.bmc_mac", sort: "set", doc: "MAC address of its BMC, in any notation.", of: ({ bmc }) => bmc.mac },
  bmc_address:    { type: "text", sql: "t.bmc_address", sort: "set", doc: "Where its BMC is, without the port.", of: ({ bmc }) => bmc.address },
  serial:         { type: "text", sql: "(t.facts ->> 'serial')", sort: "nullable", doc: "As its BMC says.", of: ({ facts }) => facts.serial },
  vendor:         { type: "text", sql: "(t.facts ->> 'vendor')", sort: "nullable", doc: "As its BMC says.", of: ({ facts }) => facts.vendor },
  model:          { type: "text", sql: "(t.facts ->> 'model')", sort: "nullable", doc: "As its BMC says.", of: ({ facts }) => facts.model },
  capacity_watts: { type: "number", sql: numberFactSql("capacityWatts"), sort: "nullable", doc: "What it can deliver, where it says.", of: ({ facts }) => facts.capacityWatts },
  created_at:     { type: "time", sql: "t.created_at", sort: "set", doc: "When it was put on record.", of: ({ createdAt }) => createdAt },
  labels:         { type: "labels", sql: "t.labels", sort: "nullable", doc: "A label, by its key; one without a value is as one that is not there.", of: ({ labels }, key) => (Object.hasOwn(labels, key) ? (labels[key] ?? null) : null) },
});

export type PowerShelfField = keyof typeof FIELDS & string;

export const powerShelfListing = createListing<PowerShelfField, PowerShelfRecord, RecordRow>({
  name: "power shelves",
  fields: FIELDS,
  id: "id",
  columns: RECORD_COLUMNS,
  from: RECORD_FROM,
  countFrom: "power_shelves t left join work w on w.kind = 'power_shelf' and w.id = t.id",
  parse: parseRecord,
});

import { FLEET_TASK_TYPES, type FleetTask } from "../../lifecycles/fleet-task/fleet-task.ts";
import { FLEET_TASK_STATES } from "../../lifecycles/fleet-task/lifecycle.ts";
import { defineFields } from "../postgres/list-fields.ts";
import { createListing } from "../postgres/listing.ts";
import { parseTask, TASK_COLUMNS, type TaskRow } from "./tasks.ts";

/** A task with the host name of its node; null: the node is not on record. */
export interface ListedTask extends FleetTask {
  readonly hostname: string | null;
}

interface ListedRow extends TaskRow {
  readonly hostname: string | null;
}

// biome-ignore format: a table is read by its columns
const FIELDS = defineFields<ListedTask>()({
  task_id:     { type: "text", sql: "t.id", sort: "set", doc: "The task's id.", of: ({ id }) => id },
  node_id:     { type: "text", sql: "t.node_id", sort: "set", doc: "The node whose agent does it.", of: ({ nodeId }) => nodeId },
  hostname:    { type: "text", sql: "n.hostname", sort: "nullable", doc: "The host name of that node.", of: ({ hostname }) => hostname },
  task_type:   { type: FLEET_TASK_TYPES, sql: "t.task_type", sort: "set", doc: "What is to be done.", of: ({ taskType }) => taskType },
  state:       { type: FLEET_TASK_STATES, sql: "t.state", sort: "set", doc: "The state of its lifecycle.", of: ({ state }) => state.name },
  state_since: { type: "time", sql: "t.state_since", sort: "set", doc: "Since when it is in its state.", of: ({ stateSince }) => stateSince },
  run_id:      { type: "text", sql: "(t.facts ->> 'run')", doc: "The run whose stage made it.", of: ({ facts }) => facts.run },
  created_at:  { type: "time", sql: "t.created_at", sort: "set", doc: "When it was made.", of: ({ createdAt }) => createdAt },
});

type FleetTaskField = keyof typeof FIELDS & string;

/** The newest first. */
export const fleetTaskListing = createListing<FleetTaskField, ListedTask, ListedRow>({
  name: "fleet tasks",
  fields: FIELDS,
  id: "task_id",
  order: [{ field: "created_at", descending: true }],
  columns: `${TASK_COLUMNS}, n.hostname`,
  from: "fleet_tasks t left join fleet_nodes n on n.id = t.node_id",
  parse: (row) => ({ ...parseTask(row), hostname: row.hostname }),
});

import { isJsonObject, type JsonObject } from "../../kernel/lifecycle.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import {
  type FleetTask,
  type FleetTaskFacts,
  type FleetTaskType,
  isFleetTaskType,
  LIVE_TASK_STATES,
} from "../../lifecycles/fleet-task/fleet-task.ts";
import { fleetTaskLifecycle } from "../../lifecycles/fleet-task/lifecycle.ts";
import { runLifecycle } from "../../runs/model/lifecycle.ts";
import { ACTIVE_RUN_PHASES } from "../../runs/model/run.ts";
import { parseStateColumns, STATE_COLUMNS, type StateColumns } from "../lifecycle/state-columns.ts";
import { parseRows, type ThingStore } from "../lifecycle/things.ts";
import * as work from "../lifecycle/work.ts";
import type { Database, Queryable } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { type Check, isText, orNull, readerOf } from "../postgres/stored-json.ts";

export interface TaskRow extends StateColumns {
  node_id: string;
  task_type: string;
  params: JsonObject;
  expires_at: Date;
  created_at: Date;
  facts: unknown;
}

const isObject: Check<JsonObject> = (value): value is JsonObject => isJsonObject(value);
const readFacts = readerOf<FleetTaskFacts>({
  run: [orNull(isText), null],
  dispatchedAt: [orNull(isText), null],
  leaseUntil: [orNull(isText), null],
  claim: [orNull(isText), null],
  finishedAt: [orNull(isText), null],
  message: [isText, ""],
  result: [orNull(isObject), null],
});

export function parseTask(row: TaskRow): FleetTask {
  if (!isFleetTaskType(row.task_type)) throw new TypeError(`${row.task_type} is no type of task`);
  return {
    ...parseStateColumns(row),
    id: row.id,
    nodeId: row.node_id,
    taskType: row.task_type,
    params: row.params,
    expiresAt: row.expires_at,
    createdAt: row.created_at,
    facts: readFacts(row.facts),
  };
}

export const TASK_COLUMNS = `${STATE_COLUMNS}, t.node_id, t.task_type, t.params, t.expires_at, t.created_at`;
const SELECT = `select ${TASK_COLUMNS} from fleet_tasks t`;

export const fleetTaskStore: ThingStore<FleetTask> = {
  lifecycle: fleetTaskLifecycle,
  table: "fleet_tasks",
  requests: {},
  related: {
    run: {
      of: ({ facts: { run } }) => (run === null ? null : { kind: runLifecycle.kind, id: run }),
      // Nothing that the step waits for.
      wakes: { butFor: ["renewed"] },
    },
  },
  async load(db, ids) {
    const values = [ids];
    return parseRows(
      await db.query<TaskRow>({ name: "fleet_tasks.load", text: `${SELECT} where t.id = any($1)`, values }),
      parseTask,
    );
  },
};

const LIVE = `t.state in (${LIVE_TASK_STATES.map((state) => `'${state}'`).join(", ")})`;

const ENDED = Object.entries(fleetTaskLifecycle.states).flatMap(([name, state]) => ("terminal" in state ? [name] : []));

/** The tasks of a node that no agent has answered yet, the oldest first. Of one type, or of all. */
export async function findOpenTasks(
  db: Queryable,
  nodeId: string,
  type?: FleetTaskType,
): Promise<readonly FleetTask[]> {
  const rows = await db.query<TaskRow>({
    hot: true,
    text: `${SELECT} where t.node_id = $1 and ${LIVE} and ($2::text is null or t.task_type = $2) order by t.created_at, t.id limit 100`,
    values: [nodeId, type ?? null],
  });
  return parseRows(rows, parseTask).things;
}

/** Nodes whose agents have something to take. Few at any time, however many nodes there are. */
export async function nodesWithQueuedTasks(db: Queryable): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ node_id: string }>({
    hot: true,
    text: `select distinct t.node_id from fleet_tasks t where t.state = 'queued' and t.expires_at > now()`,
  });
  return new Set(rows.map(({ node_id }) => node_id));
}

/** Removes tasks that ended before then, but for those that a run still goes by. Returns how many. */
export function forgetTasks(db: Database, retention: Duration, most: number): Promise<number> {
  const { kind } = fleetTaskLifecycle;
  return db.transaction(async (tx) => {
    const removed = await tx.query<{ id: string }>(
      `delete from fleet_tasks where id in (
         select t.id from fleet_tasks t
          where t.state = any($1) and t.state_since < now() - $2 * interval '1 ms'
            and not exists (select 1 from runs r where r.id = t.facts ->> 'run' and r.state = any($3))
          order by t.state, t.id limit $4)
       returning id`,
      [ENDED, retention, ACTIVE_RUN_PHASES, Math.floor(most)],
    );
    if (removed.length === 0) return 0;
    await work.forget(
      tx,
      removed.map(({ id }) => ({ kind, id })),
    );
    failPoint("fleet-tasks:forgotten");
    return removed.length;
  });
}

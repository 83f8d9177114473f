import { z } from "zod";
import { type ListedTask, pageTasks } from "../../../services/fleet/tasks.ts";
import { manyOf, pagedListOf, timestamp } from "../envelopes.ts";
import { type AnyRoute, defineRoute } from "../route.ts";
import type { FleetRouteDeps } from "./fleet-routes.ts";

const taskJson = ({ id, nodeId, hostname, taskType, state, stateSince, facts, expiresAt, createdAt }: ListedTask) => ({
  ...{ id, node_id: nodeId, hostname, task_type: taskType, state: state.name, state_since: stateSince.toISOString() },
  ...{ message: facts.message, run_id: facts.run, created_at: createdAt.toISOString() },
  ...{ expires_at: expiresAt.toISOString(), dispatched_at: facts.dispatchedAt, lease_until: facts.leaseUntil },
  finished_at: facts.finishedAt,
});
const task = z
  .object({
    ...{ id: z.string(), node_id: z.string(), hostname: z.string().nullable(), task_type: z.string() },
    ...{ state: z.string(), state_since: timestamp, message: z.string(), run_id: z.string().nullable() },
    ...{ created_at: timestamp, expires_at: timestamp, dispatched_at: timestamp.nullable() },
    ...{ lease_until: timestamp.nullable(), finished_at: timestamp.nullable() },
  })
  .meta({ id: "FleetTask" });

/** What the agents of nodes were asked to do. */
export const taskRoutes = ({ services }: FleetRouteDeps): AnyRoute[] => [
  defineRoute({
    ...{ method: "GET", path: "/api/v1/fleet/tasks", tag: "fleet" },
    summary: "Lists what agents of nodes were asked to do, and what came of it.",
    query: z.strictObject({
      node: z.string().max(320).default("").describe("Its id or its host name. Empty: of all nodes."),
      page_size: z.coerce.number().int().min(0).max(1_000).default(0),
      page_token: z.string().max(8_192).default(""),
      filter: z.string().max(8_192).default("").describe("Such as `state IN (failed, expired)`."),
      order_by: z
        .string()
        .max(1_024)
        .default("")
        .describe("Such as `hostname, created_at desc`. Empty: the newest first."),
      with_total: z.stringbool().default(false),
    }),
    errors: { 404: "There is no such node." },
    answer: pagedListOf(task),
    handle: async ({ query: { node, filter, order_by, page_size, page_token, with_total } }) =>
      manyOf(
        await pageTasks(
          services,
          {
            ...{ node, filter, orderBy: order_by, pageSize: page_size, pageToken: page_token },
            withTotal: with_total,
            reach: undefined,
          },
          taskJson,
        ),
        (json) => json,
      ),
  }),
];

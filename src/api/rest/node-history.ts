import { z } from "zod";
import type { Duration } from "../../kernel/time/duration.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { eventsOf, historyOf, stalledInstalls, statsOf } from "../../services/install/history.ts";
import { historyPage, historyPageOf, listOf, many, objectOf, one, pageQuery } from "./envelopes.ts";
import { NODES, UNKNOWN_NODE } from "./node-answers.ts";
import * as schemas from "./node-schemas.ts";
import { type AnyRoute, defineRoute } from "./route.ts";

export interface NodeHistoryDeps {
  readonly services: ServiceDeps;
  readonly installTimeout: Duration;
}

const listHistory = ({ services }: NodeHistoryDeps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/nodes/{id}/history",
    tag: NODES,
    summary: "Lists the transitions of a node, newest first.",
    params: schemas.nodeId,
    query: z.strictObject({
      limit: z.coerce.number().int().min(1).max(200).default(50),
      offset: z.coerce.number().int().min(0).default(0),
    }),
    errors: UNKNOWN_NODE,
    answer: historyPageOf(schemas.transition),
    async handle({ params: { id }, query }) {
      const { transitions, ...extent } = await historyOf(services, id, query);
      return historyPage(transitions.map(schemas.transitionJson), extent);
    },
  });

const listEvents = ({ services }: NodeHistoryDeps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/nodes/{id}/events",
    tag: NODES,
    summary: "Lists everything that happened to a node, newest first.",
    params: schemas.nodeId,
    query: z.strictObject({
      limit: z.coerce.number().int().min(1).max(500).default(50),
      offset: z.coerce.number().int().min(0).default(0),
      event_type: z.string().optional(),
    }),
    errors: UNKNOWN_NODE,
    answer: historyPageOf(schemas.event),
    async handle({ params: { id }, query: { limit, offset, event_type } }) {
      const { events, ...extent } = await eventsOf(services, id, { limit, offset, type: event_type });
      return historyPage(events.map(schemas.eventJson), extent);
    },
  });

const countNodes = ({ services }: NodeHistoryDeps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/nodes/stats",
    tag: NODES,
    summary: "Counts nodes by state.",
    answer: objectOf(
      z.object({
        total: z.int(),
        by_state: z.record(z.string(), z.int()),
        discovered_last_hour: z.int(),
        installing_count: z.int(),
      }),
    ),
    async handle() {
      const { total, byState, discoveredLastHour, installing } = await statsOf(services);
      return one({
        total,
        by_state: byState,
        discovered_last_hour: discoveredLastHour,
        installing_count: installing,
      });
    },
  });

const listStalledNodes = ({ services, installTimeout }: NodeHistoryDeps) =>
  defineRoute({
    method: "GET",
    path: "/api/v1/nodes/stalled",
    tag: NODES,
    summary: "Lists nodes that have been installing for longer than an attempt may take, the longest first.",
    query: z.strictObject(pageQuery),
    answer: listOf(schemas.node),
    async handle({ query }) {
      const { installs, total } = await stalledInstalls(services, installTimeout, query);
      return many(installs.map(schemas.nodeJson), total);
    },
  });

/** What happened to nodes, one by one and counted, and which of them are stuck. */
export const nodeHistoryRoutes = (deps: NodeHistoryDeps): AnyRoute[] =>
  [listHistory, listEvents, countNodes, listStalledNodes].map((route) => route(deps));

import { z } from "zod";
import {
  ALLOCATION_STATES,
  type FleetAllocation,
  getAllocation,
  messageOfAllocation,
  pageAllocations,
  releaseAllocation,
  requestAllocation,
} from "../../../services/fleet/allocations.ts";
import { manyOf, objectOf, one, pagedListOf, timestamp } from "../envelopes.ts";
import { type AnyRoute, defineRoute } from "../route.ts";
import type { FleetRouteDeps } from "./fleet-routes.ts";

const TAG = "fleet";
const PATH = "/api/v1/fleet/allocations";
const ONE = `${PATH}/{id}`;
const params = z.object({ id: z.string().meta({ examples: ["fa-0123456789abcdef0123"] }) });
const unknown = { 404: "There is no such allocation." };

const allocationJson = ({ id, node, hostname, tenant, state, outcome, ...allocation }: FleetAllocation) => ({
  ...{ id, node, hostname, tenant },
  state: state.name,
  message: messageOfAllocation(state, outcome),
  state_since: allocation.stateSince.toISOString(),
  created_by: allocation.createdBy,
  created_at: allocation.createdAt.toISOString(),
});
const allocation = z
  .object({
    ...{ id: z.string(), node: z.string(), hostname: z.string(), tenant: z.string() },
    state: z.enum(ALLOCATION_STATES),
    message: z.string(),
    state_since: timestamp,
    created_by: z.string(),
    created_at: timestamp,
  })
  .meta({ id: "FleetAllocation" });

/** Who uses fleet nodes. */
export const allocationRoutes = ({ services }: FleetRouteDeps): AnyRoute[] => [
  defineRoute({
    ...{ method: "GET", path: PATH, tag: TAG, summary: "Lists allocations." },
    query: z.strictObject({
      node: z.string().max(253).default(""),
      status: z.enum(ALLOCATION_STATES).optional(),
      tenant: z.string().max(253).default(""),
      page_size: z.coerce.number().int().min(0).max(1_000).default(0),
      page_token: z.string().max(8_192).default(""),
    }),
    errors: { 404: "There is no such node." },
    answer: pagedListOf(allocation),
    handle: async ({ query: { node, status = "", tenant, page_size: pageSize, page_token: pageToken } }) =>
      manyOf(
        { totalSize: null, ...(await pageAllocations(services, { node, state: status, tenant, pageSize, pageToken })) },
        allocationJson,
      ),
  }),
  defineRoute({
    ...{ method: "POST", path: PATH, tag: TAG, summary: "Asks for the use of a node." },
    body: z.strictObject({
      node: z.string().max(253).describe("Its id, or its host name."),
      tenant: z.string().max(253),
      request_id: z.string().max(253).describe("The same request again gets the same allocation."),
    }),
    errors: { 404: "There is no such node.", 400: "The node is not active.", 409: "The request was made for another." },
    example: { node: "gpu-17", tenant: "team-a", request_id: "order-4711" },
    status: 201,
    answer: objectOf(allocation),
    handle: async ({ body: { node, tenant, request_id: requestId }, caller }) =>
      one(allocationJson(await requestAllocation(services, caller, { node, tenant, requestId }))),
  }),
  defineRoute({
    ...{ method: "GET", path: ONE, tag: TAG, summary: "Shows an allocation.", params, errors: unknown },
    answer: objectOf(allocation),
    handle: async ({ params: { id } }) => one(allocationJson(await getAllocation(services, id))),
  }),
  ...([false, true] as const).map((force) =>
    defineRoute({
      ...{ method: "POST" as const, path: `${ONE}/${force ? "force-release" : "release"}`, tag: TAG, params },
      summary: force ? "Ends the use of a node without waiting for its user." : "Ends the use of a node.",
      errors: { ...unknown, 400: "It is neither active nor failed to be released." },
      answer: objectOf(allocation),
      handle: async ({ params: { id }, caller }) =>
        one(allocationJson(await releaseAllocation(services, caller, { id, force }))),
    }),
  ),
];

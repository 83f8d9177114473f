import { z } from "zod";
import { pageRefusedCalls, type RefusedCallsRow } from "../../../services/audit/refused-calls.ts";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import { manyOf, pagedListOf, timestamp } from "../envelopes.ts";
import { type AnyRoute, defineRoute, inQuery } from "../route.ts";

const refusedCalls = z
  .object({
    id: z.string(),
    minute: timestamp,
    address: z.string(),
    who: z.string(),
    method: z.string(),
    outcome: z.enum(["sign_in_failed", "refused"]),
    calls: z.int(),
    last_at: timestamp,
  })
  .meta({ id: "RefusedCalls" });

const json = ({ id, minute, address, name, method, outcome, calls, lastAt }: RefusedCallsRow) => ({
  ...{ id, address, who: name, method, outcome, calls },
  minute: minute.toISOString(),
  last_at: lastAt.toISOString(),
});

const query = z.strictObject({
  filter: z.string().max(8_192).default(""),
  order_by: z.string().max(1_024).default(""),
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
  page_token: z.string().max(8_192).default(""),
});

export const auditRoutes = ({ services }: { readonly services: ServiceDeps }): AnyRoute[] => [
  defineRoute({
    method: "GET",
    path: "/api/v1/audit/refused-calls",
    tag: "audit",
    summary: "Lists failed sign-ins and refused calls, counted by minute; the latest first.",
    query,
    answer: pagedListOf(refusedCalls),
    async handle({ query: { filter, order_by: orderBy, limit: pageSize, page_token: pageToken } }) {
      const page = pageRefusedCalls(services, {
        ...{ filter, orderBy, pageSize, pageToken },
        ...{ withTotal: true, reach: undefined },
      });
      return manyOf(await inQuery(page), json);
    },
  }),
];

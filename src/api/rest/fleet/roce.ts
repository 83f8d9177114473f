import { z } from "zod";
import {
  deleteRoceAssignment,
  pageRoceAssignments,
  type RoceAssignment,
  setRoceAssignments,
} from "../../../services/fleet/roce.ts";
import { listOf, many, manyOf, objectOf, one, pagedListOf, timestamp } from "../envelopes.ts";
import { type AnyRoute, defineRoute } from "../route.ts";
import type { FleetRouteDeps } from "./fleet-routes.ts";

const TAG = "fleet";
const PATH = "/api/v1/fleet/sites/{site}/roce";
const params = z.object({ site: z.string().meta({ examples: ["lab"] }) });
const paramsOfOne = z.object({ ...params.shape, hostname: z.string().meta({ examples: ["gpu-17"] }) });

const assignmentJson = ({ site, hostname, links, createdAt }: RoceAssignment) => ({
  ...{ site, hostname },
  links: links.map(({ port, subnet, ipAddress }) => ({ port, subnet, ip_address: ipAddress })),
  created_at: createdAt.toISOString(),
});
const link = z.strictObject({
  port: z.string().max(63).describe("As MAAS calls it, or its MAC address."),
  subnet: z.string().max(49),
  ip_address: z.string().max(45),
});
const assignment = z
  .object({ site: z.string(), hostname: z.string(), links: z.array(link), created_at: timestamp })
  .meta({ id: "FleetRoceAssignment" });

/** The addresses that the ports of nodes get while nodes are onboarded. */
export const roceRoutes = ({ services }: FleetRouteDeps): AnyRoute[] => [
  defineRoute({
    ...{ method: "GET", path: PATH, tag: TAG, summary: "Lists the RoCE assignments of a site.", params },
    query: z.strictObject({
      hostname: z.string().max(63).default(""),
      page_size: z.coerce.number().int().min(0).max(1_000).default(0),
      page_token: z.string().max(8_192).default(""),
    }),
    answer: pagedListOf(assignment),
    handle: async ({ params: { site }, query: { hostname, page_size: pageSize, page_token: pageToken } }) =>
      manyOf(
        { totalSize: null, ...(await pageRoceAssignments(services, { site, hostname, pageSize, pageToken })) },
        assignmentJson,
      ),
  }),
  defineRoute({
    ...{ method: "PUT", path: PATH, tag: TAG, params },
    summary: "Gives nodes RoCE links in place of those that they had, all nodes or none.",
    errors: { 404: "There is no such site.", 400: "An address belongs to another node." },
    body: z.strictObject({
      nodes: z.array(z.strictObject({ hostname: z.string().max(63), links: z.array(link).max(64) })).max(1_000),
    }),
    example: {
      nodes: [{ hostname: "gpu-17", links: [{ port: "ib0", subnet: "10.10.0.0/24", ip_address: "10.10.0.17" }] }],
    },
    answer: listOf(assignment),
    handle: async ({ params: { site }, body: { nodes }, caller }) => {
      const set = await setRoceAssignments(services, caller, {
        site,
        nodes: nodes.map(({ hostname, links }) => ({
          hostname,
          links: links.map(({ ip_address: ipAddress, ...rest }) => ({ ...rest, ipAddress })),
        })),
      });
      return many(set.map(assignmentJson), set.length);
    },
  }),
  defineRoute({
    ...{ method: "DELETE", path: `${PATH}/{hostname}`, tag: TAG, params: paramsOfOne },
    summary: "Forgets the RoCE assignment of a node.",
    errors: { 404: "The node has none at this site." },
    answer: objectOf(z.null()),
    handle: async ({ params: of, caller }) => {
      await deleteRoceAssignment(services, caller, of);
      return one(null, "RoCE assignment deleted successfully");
    },
  }),
];

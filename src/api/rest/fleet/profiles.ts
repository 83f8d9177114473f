import { z } from "zod";
import {
  deleteProfile,
  type FleetProfile,
  getProfile,
  pageProfiles,
  setProfile,
} from "../../../services/fleet/profiles.ts";
import { manyOf, objectOf, one, pagedListOf, timestamp } from "../envelopes.ts";
import { type AnyRoute, defineRoute } from "../route.ts";
import type { FleetRouteDeps } from "./fleet-routes.ts";

const TAG = "fleet";
const PATH = "/api/v1/fleet/sites/{site}/profiles";
const ONE = `${PATH}/{profile}`;
const siteName = { site: z.string().meta({ examples: ["lab"] }) };
const params = z.object({ ...siteName, profile: z.string().meta({ examples: ["h100"] }) });
const unknown = { 404: "There is no such site, or no such profile of it." };

const profileJson = ({ site, name, policy, createdAt, updatedAt }: FleetProfile) => ({
  ...{ site, name, policy },
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
});
const profile = z
  .object({
    site: z.string(),
    name: z.string(),
    policy: z.record(z.string(), z.unknown()).describe("Every field, with defaults filled in."),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: "FleetProfile" });

/** How nodes of one kind are brought up at a site. */
export const profileRoutes = ({ services }: FleetRouteDeps): AnyRoute[] => [
  defineRoute({
    ...{ method: "GET", path: PATH, tag: TAG, summary: "Lists the profiles of a site.", params: z.object(siteName) },
    query: z.strictObject({
      page_size: z.coerce.number().int().min(0).max(1_000).default(0),
      page_token: z.string().max(8_192).default(""),
    }),
    answer: pagedListOf(profile),
    handle: async ({ params: { site }, query: { page_size: pageSize, page_token: pageToken } }) =>
      manyOf({ totalSize: null, ...(await pageProfiles(services, { site, pageSize, pageToken })) }, profileJson),
  }),
  defineRoute({
    ...{ method: "GET", path: ONE, tag: TAG, summary: "Shows a profile.", params, errors: unknown },
    answer: objectOf(profile),
    handle: async ({ params: { site, profile: name } }) => one(profileJson(await getProfile(services, site, name))),
  }),
  defineRoute({
    ...{
      method: "PUT",
      path: ONE,
      tag: TAG,
      summary: "Makes a profile, or replaces it whole.",
      params,
      errors: unknown,
    },
    body: z.strictObject({
      policy: z.record(z.string(), z.unknown()).default({}).describe("The fields that differ from their defaults."),
    }),
    example: { policy: { enable_phase2_roce: true, max_deploy_retry_attempts: 1 } },
    answer: objectOf(profile),
    handle: async ({ params: { site, profile: name }, body: { policy }, caller }) =>
      one(profileJson(await setProfile(services, caller, { site, name, policy })), "Profile set successfully"),
  }),
  defineRoute({
    ...{ method: "DELETE", path: ONE, tag: TAG, summary: "Forgets a profile.", params, errors: unknown },
    answer: objectOf(z.null()),
    handle: async ({ params: { site, profile: name }, caller }) => {
      await deleteProfile(services, caller, site, name);
      return one(null, "Profile deleted successfully");
    },
  }),
];

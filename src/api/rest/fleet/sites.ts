import { z } from "zod";
import { type Candidate, listCandidates } from "../../../services/fleet/candidates.ts";
import { PREFLIGHT_CHECKS, preflightSite } from "../../../services/fleet/preflight.ts";
import { addSite, changeSite, deleteSite, type FleetSite, getSite, pageSites } from "../../../services/fleet/sites.ts";
import { listOf, many, manyOf, objectOf, one, pagedListOf, printable, timestamp } from "../envelopes.ts";
import { type AnyRoute, defineRoute } from "../route.ts";
import type { FleetRouteDeps } from "./fleet-routes.ts";

const TAG = "fleet";
const PATH = "/api/v1/fleet/sites";
const ONE = `${PATH}/{site}`;
const params = z.object({ site: z.string().meta({ examples: ["lab"] }) });
const unknown = { 404: "There is no such site." };
const REFUSED = { 400: "MAAS does not answer, or does not accept the key." };

const siteJson = ({ name, url, description, isEnabled, retainInMaas, createdAt, updatedAt }: FleetSite) => ({
  ...{ name, url, description, enabled: isEnabled, retain_in_maas: retainInMaas },
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
});
const site = z
  .object({
    name: z.string(),
    url: z.string(),
    description: z.string(),
    enabled: z.boolean(),
    retain_in_maas: z.boolean(),
    created_at: timestamp,
    updated_at: timestamp,
  })
  .meta({ id: "FleetSite" });

const settings = {
  url: z.string().max(2_048),
  api_key: z.string().max(1_024).describe("As MAAS shows it. Kept encrypted; no call returns it."),
  description: printable(1_024),
  retain_in_maas: z.boolean(),
};
const how = {
  allow_http: z.boolean().default(false).describe("Accepts an http url: the API key then travels unencrypted."),
  skip_probe: z.boolean().default(false).describe("Records the site without calling its MAAS."),
};
const newSite = z.strictObject({
  name: z.string().max(63),
  ...settings,
  description: settings.description.default(""),
  retain_in_maas: settings.retain_in_maas.default(false),
  ...how,
});
const siteChange = z.strictObject({
  ...z.object({ ...settings, enabled: z.boolean() }).partial().shape,
  ...how,
});

const pageQuery = {
  page_size: z.coerce.number().int().min(0).max(1_000).default(0),
  page_token: z.string().max(8_192).default(""),
  filter: z.string().max(8_192).default("").describe("Such as `enabled=true`."),
  order_by: z.string().max(1_024).default("").describe("Such as `created_at desc`."),
  with_total: z.stringbool().default(false),
};

const candidateJson = ({ systemId, statusName, macs, ...candidate }: Candidate) => ({
  ...candidate,
  ...{ system_id: systemId, status_name: statusName, macs: [...macs] },
});
const candidate = z
  .object({
    source: z.enum(["maas", "network"]).describe("network: MAAS has seen it, and has no machine of it."),
    system_id: z.string().describe("Empty where source is network."),
    hostname: z.string(),
    state: z.string().describe("Empty where source is network."),
    status_name: z.string(),
    power: z.enum(["on", "off", "unknown"]),
    serial: z.string().nullable(),
    macs: z.array(z.string()),
    ip: z.string().nullable().describe("A management controller is onboarded by it (ipmi_ip)."),
    vendor: z.string().nullable(),
    obstacle: z.string(),
  })
  .meta({ id: "FleetCandidate" });
const preflight = z
  .object({
    ready: z.boolean(),
    version: z.string(),
    results: z.array(
      z.object({
        check: z.enum(PREFLIGHT_CHECKS),
        result: z.enum(["passed", "failed", "skipped"]),
        message: z.string(),
        next: z.string(),
      }),
    ),
  })
  .meta({ id: "FleetPreflight" });

/** The sites that GPU nodes are onboarded through. */
export const siteRoutes = (deps: FleetRouteDeps): AnyRoute[] => [
  ...readingRoutes(deps),
  ...writingRoutes(deps),
  ...askingRoutes(deps),
];

const readingRoutes = ({ services }: FleetRouteDeps): AnyRoute[] => [
  defineRoute({
    ...{ method: "GET", path: PATH, tag: TAG, summary: "Lists sites by name." },
    query: z.strictObject(pageQuery),
    answer: pagedListOf(site),
    handle: async ({ query }) =>
      manyOf(
        await pageSites(services, {
          ...{ filter: query.filter, orderBy: query.order_by, withTotal: query.with_total },
          ...{ pageSize: query.page_size, pageToken: query.page_token, reach: undefined },
        }),
        siteJson,
      ),
  }),
  defineRoute({
    ...{ method: "GET", path: ONE, tag: TAG, summary: "Shows a site.", params, errors: unknown },
    answer: objectOf(site),
    handle: async ({ params: { site: name } }) => one(siteJson(await getSite(services, name))),
  }),
];

const writingRoutes = ({ services }: FleetRouteDeps): AnyRoute[] => [
  defineRoute({
    ...{ method: "POST", path: PATH, tag: TAG, summary: "Records a site, and tries its MAAS." },
    body: newSite,
    errors: { ...REFUSED, 409: "The name is taken." },
    example: { name: "lab", url: "https://maas.example.com:5443/MAAS", api_key: "a:b:c", skip_probe: true },
    status: 201,
    answer: objectOf(site),
    handle: async ({ body, caller }) => {
      const {
        api_key: apiKey,
        retain_in_maas: retainInMaas,
        allow_http: allowHttp,
        skip_probe: skipProbe,
        ...rest
      } = body;
      const made = await addSite(services, caller, { ...rest, apiKey, retainInMaas, allowHttp, skipProbe });
      return one(siteJson(made), "Site created successfully");
    },
  }),
  defineRoute({
    ...{
      method: "PATCH",
      path: ONE,
      tag: TAG,
      summary: "Changes a site. Another url takes the API key again.",
      params,
    },
    body: siteChange,
    errors: { ...unknown, ...REFUSED, 409: "Another call changed the site." },
    example: { description: "the lab" },
    answer: objectOf(site),
    handle: async ({ params: { site: name }, body, caller }) => {
      const changed = await changeSite(services, caller, {
        ...{ name, url: body.url, apiKey: body.api_key, description: body.description, isEnabled: body.enabled },
        ...{ retainInMaas: body.retain_in_maas, allowHttp: body.allow_http, skipProbe: body.skip_probe },
      });
      return one(siteJson(changed), "Site updated successfully");
    },
  }),
  defineRoute({
    ...{ method: "DELETE", path: ONE, tag: TAG, summary: "Forgets a site and its API key.", params },
    errors: { ...unknown, 400: "Something belongs to the site." },
    answer: objectOf(z.null()),
    handle: async ({ params: { site: name }, caller }) => {
      await deleteSite(services, caller, name);
      return one(null, "Site deleted successfully");
    },
  }),
];

/** These call MAAS. */
const askingRoutes = ({ services }: FleetRouteDeps): AnyRoute[] => [
  defineRoute({
    ...{
      method: "GET",
      path: `${ONE}/preflight`,
      tag: TAG,
      summary: "Whether nodes can be onboarded at a site now.",
      params,
    },
    errors: { ...unknown, 400: "The API key of the site is not on record." },
    answer: objectOf(preflight),
    handle: async ({ params: { site: name } }) => {
      const { version, results } = await preflightSite(services, name);
      const ready = results.every(({ is }) => is === "passed");
      return one({ ready, version, results: results.map(({ is, ...result }) => ({ ...result, result: is })) });
    },
  }),
  defineRoute({
    ...{
      method: "GET",
      path: `${ONE}/candidates`,
      tag: TAG,
      summary: "What MAAS has, or has seen on its networks, that could be onboarded.",
      params,
    },
    query: z.strictObject({ all: z.stringbool().default(false) }),
    errors: { ...unknown, ...REFUSED },
    answer: listOf(candidate),
    handle: async ({ params: { site: name }, query: { all } }) => {
      const candidates = await listCandidates(services, { site: name, all });
      return many(candidates.map(candidateJson), candidates.length);
    },
  }),
];

import type { ServiceImpl } from "@connectrpc/connect";
import type { FleetService } from "../../../../contract/millwright/v1/fleet_pb.js";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import { listCandidates } from "../../../services/fleet/candidates.ts";
import { preflightSite } from "../../../services/fleet/preflight.ts";
import { deleteProfile, pageProfiles, setProfile } from "../../../services/fleet/profiles.ts";
import { addSite, changeSite, deleteSite, getSite, pageSites } from "../../../services/fleet/sites.ts";
import { listRequestFrom, pageOf } from "../../convert/listing.ts";
import { callerKey } from "../../transport/interceptors.ts";
import { candidateOf, profileOf, siteOf } from "./messages.ts";

export const fleet = (deps: ServiceDeps): ServiceImpl<typeof FleetService> => ({
  async addSite(request, { values }) {
    return { site: siteOf(await addSite(deps, values.get(callerKey), request)) };
  },
  async updateSite({ enabled, ...request }, { values }) {
    return { site: siteOf(await changeSite(deps, values.get(callerKey), { ...request, isEnabled: enabled })) };
  },
  async getSite({ name }) {
    return { site: siteOf(await getSite(deps, name)) };
  },
  async listSites(request) {
    const page = await pageSites(deps, listRequestFrom(request, null));
    return { sites: page.items.map(siteOf), ...pageOf(page) };
  },
  async removeSite({ name }, { values }) {
    await deleteSite(deps, values.get(callerKey), name);
    return {};
  },
  async preflightSite({ name }) {
    const { version, results } = await preflightSite(deps, name);
    return {
      ready: results.every(({ is }) => is === "passed"),
      version,
      results: results.map(({ is, ...result }) => ({ ...result, result: is })),
    };
  },
  async listCandidates({ site, all }) {
    return { candidates: (await listCandidates(deps, { site, all })).map(candidateOf) };
  },
  async setProfile(request, { values }) {
    return { profile: profileOf(await setProfile(deps, values.get(callerKey), request)) };
  },
  async listProfiles({ site, pageSize, pageToken }) {
    const { items, nextPageToken } = await pageProfiles(deps, { site, pageSize, pageToken });
    return { profiles: items.map(profileOf), nextPageToken };
  },
  async removeProfile({ site, name }, { values }) {
    await deleteProfile(deps, values.get(callerKey), site, name);
    return {};
  },
});

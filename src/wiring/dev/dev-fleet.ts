import { z } from "zod";
import { type Config, publicUrlsOf } from "../../config.ts";
import { AppError } from "../../kernel/errors.ts";
import type { Caller } from "../../services/call/caller.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { setProfile } from "../../services/fleet/profiles.ts";
import { addSite, changeSite, getSite } from "../../services/fleet/sites.ts";

const maasSchema = z.object({ url: z.string(), api_key: z.string() });
const NAME = "sim";

/** Simulated servers run their agents on this computer: they reach the server where it listens, unless somebody says otherwise. */
export function withAgentsHere(config: Config): Config {
  const { fleet, http } = config;
  if (publicUrlsOf(config).fleet !== null || http.listen.port === 0) return config;
  const { host, port } = http.listen;
  return { ...config, fleet: { ...fleet, publicUrl: `http://${host.includes(":") ? `[${host}]` : host}:${port}` } };
}

/** The MAAS of a simulated site as the site `sim`, with a profile of that name; what is on record already stays. */
export async function recordSimulatedMaas(deps: ServiceDeps, caller: Caller, controlUrl: string): Promise<void> {
  const answer = await fetch(new URL("/maas", controlUrl));
  if (answer.status === 404) return;
  const { url, api_key: apiKey } = maasSchema.parse(await answer.json());
  const how = { allowHttp: true, skipProbe: true };
  try {
    const site = { name: NAME, url, apiKey, description: "the simulated MAAS", retainInMaas: false };
    await addSite(deps, caller, { ...site, ...how });
    await setProfile(deps, caller, { site: NAME, name: NAME });
  } catch (error) {
    if (!(error instanceof AppError) || error.kind !== "already_exists") throw error;
    // The simulator may have been given another port.
    if ((await getSite(deps, NAME)).url !== url) await changeSite(deps, caller, { name: NAME, url, apiKey, ...how });
  }
}

import { StepFailure } from "../../kernel/errors.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import type { OnLeaving } from "../../runs/steps/fleet/decommission/on-leaving.ts";
import type { MaasOfSite } from "../../runs/steps/fleet/on-fleet-node.ts";
import type { OnOnboarding } from "../../runs/steps/fleet/onboarding/on-onboarding.ts";
import type { RunOn } from "../../runs/targets/target-kind.ts";
import { FLEET_DECOMMISSION } from "../../runs/workflows/fleet/words.ts";
import { placeOfUrl } from "../../services/fleet/site-target.ts";
import { fleetSites, getApiKey } from "../../store/fleet/sites.ts";
import type { TargetTools } from "../things/thing.ts";
import { agentOfNode, enrolmentOfNode } from "./agent-parts.ts";
import { leavingPartsOf } from "./leaving-parts.ts";
import { onboardingPartsOf } from "./onboarding-parts.ts";

/** What a step on a fleet node is given. */
export const fleetPartsOf =
  (tools: TargetTools) =>
  ({ plan, target: { thing: target } }: RunOn<FleetNode>): OnOnboarding & OnLeaving => ({
    target,
    ...onboardingPartsOf(tools, target),
    ...leavingPartsOf(tools, target),
    // Nodes can leave a site that is disabled: nothing new is begun there.
    maas: ({ evenDisabled } = { evenDisabled: false }) =>
      maasOfSite(tools, target.site, { evenDisabled: evenDisabled || plan.workflow === FLEET_DECOMMISSION }),
    agent: agentOfNode(tools, target.id),
    enrolment: enrolmentOfNode(tools, target),
  });

/** As it is on record now: a site may be disabled, or get another key, while jobs run. */
export async function maasOfSite(
  { db, secrets, maas }: Pick<TargetTools, "db" | "secrets" | "maas">,
  name: string,
  { evenDisabled = false } = {},
): Promise<MaasOfSite> {
  const [site] = await fleetSites.list(db, { names: [name] });
  const refuse = (why: string) =>
    new StepFailure("site_unavailable", `fleet site ${name} ${why}`, {
      disposition: "intervene",
      facts: { what: "fleet site", name },
    });
  if (!site) throw refuse("does not exist any more");
  if (!site.isEnabled && !evenDisabled) throw refuse("is disabled");
  if (!maas)
    throw new StepFailure("not_on_this_server", "this server calls no MAAS", {
      facts: { what: "provider", name: "maas" },
    });
  const apiKey = await getApiKey(db, secrets, site);
  if (apiKey === undefined)
    throw new StepFailure(
      "credentials_missing",
      `fleet site ${name} has no API key for ${site.url}; millwright fleet site update ${name} --api-key-file - gives it`,
      { disposition: "intervene", facts: { at: "bmc", name } },
    );
  const { url: _, ...place } = placeOfUrl(site.url);
  return { maas, target: { ...place, apiKey }, retainsMachines: site.retainInMaas };
}

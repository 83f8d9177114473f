import { seconds } from "../../../../kernel/time/duration.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { defineStepOn, type ProbeReport } from "../../../model/step.ts";
import { type Onboarding, type OnOnboarding, parseOnboarding, patiently } from "./on-onboarding.ts";

/** Whether the MAAS of the site answers, lets us in, and has what the profile names. Changes nothing. */
export const loadSiteConfig = defineStepOn<OnOnboarding>()({
  kind: "load_site_config",
  needs: [],
  defaults: { timeout: seconds(600), maxRetries: 0 },
  parse: parseOnboarding,
  before: async () => ({}),
  act: async () => undefined,
  probe: (context) => patiently(() => look(context)),
});

async function look({ maas, payload, call }: Onboarding): Promise<ProbeReport> {
  const site = await maas();
  const user = await site.maas.readUser(site.target, call);
  const { distro_series: series } = payload.policy;
  if (series !== null) {
    const images = await site.maas.listImages(site.target, call);
    if (!images.some((image) => image === series || image.split("/").at(-1) === series))
      throw failedAs("image_missing", `MAAS has no image of ${series}; it has ${images.join(", ") || "none"}`, {
        name: series,
      });
  }
  return { state: "done", message: `MAAS answers as ${user.name}` };
}

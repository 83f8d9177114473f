import { seconds } from "../../../../kernel/time/duration.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { defineStepOn, type ProbeReport } from "../../../model/step.ts";
import { drifted, notUsable, reachedBy } from "./maas-status.ts";
import { findBound, type Onboarding, type OnOnboarding, parseOnboarding, patiently, shownAs } from "./on-onboarding.ts";

/** Waits for the end of the deployment. That it failed is for the stage that finds out why. */
export const waitForDeployed = defineStepOn<OnOnboarding>()({
  kind: "wait_for_deployed",
  needs: [],
  defaults: { timeout: seconds(5_400), maxRetries: 0 },
  parse: parseOnboarding,
  before: async () => ({}),
  act: async () => undefined,
  probe: (context) => patiently(() => look(context)),
});

async function look(context: Onboarding): Promise<ProbeReport> {
  const { machine } = await findBound(context);
  const message = shownAs(machine);
  switch (reachedBy(machine)) {
    case "deployed":
      return { state: "done", message };
    case "deploying":
      return { state: "in_progress", message, cause: { code: "deploy_stuck", facts: { shown: machine.statusName } } };
    case "deploy_failed":
      throw failedAs("deploy_failed", `MAAS shows ${message}`, { shown: machine.statusName });
    case "unusable":
      throw notUsable(machine);
    default:
      throw drifted(machine, "Deploying");
  }
}

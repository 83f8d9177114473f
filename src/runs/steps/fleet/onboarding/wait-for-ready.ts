import { seconds } from "../../../../kernel/time/duration.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { defineStepOn, type ProbeReport } from "../../../model/step.ts";
import { hasFailedCommissioning, hasFailedTesting, notUsable, reachedBy } from "./maas-status.ts";
import { findBound, type Onboarding, type OnOnboarding, parseOnboarding, patiently, shownAs } from "./on-onboarding.ts";

/** Waits until MAAS has commissioned the machine. One that is further already is taken as it is. */
export const waitForReady = defineStepOn<OnOnboarding>()({
  kind: "wait_for_ready",
  needs: [],
  defaults: { timeout: seconds(3_600), maxRetries: 0 },
  parse: parseOnboarding,
  before: async () => ({}),
  act: async () => undefined,
  probe: (context) => patiently(() => look(context)),
});

async function look(context: Onboarding): Promise<ProbeReport> {
  const { machine } = await findBound(context);
  const message = shownAs(machine);
  switch (reachedBy(machine)) {
    case "commissioning":
    case "moving":
      return {
        state: "in_progress",
        message,
        cause: { code: "commissioning_stuck", facts: { shown: machine.statusName } },
      };
    case "unusable":
      throw notUsable(machine);
    case "blank": {
      const shown = { shown: machine.statusName };
      if (hasFailedTesting(machine)) throw failedAs("testing_failed", `MAAS shows ${message}`, shown);
      const why = hasFailedCommissioning(machine) ? message : "New again: somebody aborted its commissioning";
      throw failedAs("commissioning_failed", `MAAS shows ${why}`, shown);
    }
    default:
      return { state: "done", message };
  }
}

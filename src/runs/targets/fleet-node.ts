import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import { FLEET_DECOMMISSION, FLEET_ONBOARDING } from "../workflows/fleet/words.ts";
import { decommissionEnded } from "./fleet-decommission.ts";
import { onboardingEnded, onboardingStarted } from "./fleet-onboarding.ts";
import type { TargetKind } from "./target-kind.ts";

/** What a job means for its node, by the workflow that it is of. */
export const fleetNodeTarget: TargetKind<FleetNode> = {
  kind: fleetNodeLifecycle.kind,
  whenStarted: (run) => (run.plan.workflow === FLEET_ONBOARDING ? onboardingStarted(run) : []),
  whenEnded(run, end) {
    switch (run.plan.workflow) {
      case FLEET_ONBOARDING:
        return onboardingEnded(run, end);
      case FLEET_DECOMMISSION:
        return decommissionEnded(run, end);
      default:
        return [];
    }
  },
  signInRemedy: ({ id }) => `millwright fleet show ${id} tells the site; its key is replaced there`,
};

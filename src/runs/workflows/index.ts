import { serverSteps } from "../steps/index.ts";
import { fleetDecommission } from "./fleet/fleet-decommission.ts";
import { fleetOnboarding } from "./fleet/fleet-onboarding.ts";
import { rackMaintenance } from "./rack/rack-maintenance.ts";
import { rackValidation } from "./rack/rack-validation.ts";
import { collectWorkflows, type Workflows } from "./workflow.ts";

/** All workflows of this server, by their kind. */
export const allWorkflows: Workflows = collectWorkflows(
  [rackMaintenance, rackValidation, fleetOnboarding, fleetDecommission],
  serverSteps,
);

import { seconds } from "../../../../kernel/time/duration.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { defineStepOn } from "../../../model/step.ts";
import { nameOf, type OnOnboarding, parseOnboarding } from "./on-onboarding.ts";

/** Whether there is an account for the management controller of the node, which MAAS is to use. Nothing of it is kept with the run. */
export const resolvePowerCredentials = defineStepOn<OnOnboarding>()({
  kind: "resolve_power_credentials",
  needs: [],
  defaults: { timeout: seconds(60), maxRetries: 0 },
  parse: parseOnboarding,
  before: async () => ({}),
  act: async () => undefined,
  async probe({ powerAccount, target: node }) {
    const account = node.ipmiIp === null ? undefined : await powerAccount();
    if (account === undefined)
      throw failedAs(
        "credentials_missing",
        `no account for the management controller of ${nameOf(node)} (${node.ipmiIp ?? "without an address"}) is on record; next: millwright machine set-credentials ${node.machineId} --bmc-username NAME`,
        { at: "bmc", name: node.machineId },
      );
    return { state: "done", message: `as ${account.username}` };
  },
});

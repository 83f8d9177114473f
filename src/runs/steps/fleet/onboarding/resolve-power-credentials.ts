import { seconds } from "../../../../kernel/time/duration.ts";
import { defineStepOn } from "../../../model/step.ts";
import { accountOfNode } from "./account-of-node.ts";
import { type OnOnboarding, parseOnboarding } from "./on-onboarding.ts";

/** Whether there is an account for the management controller of the node, which MAAS is to use. Nothing of it is kept with the run. */
export const resolvePowerCredentials = defineStepOn<OnOnboarding>()({
  kind: "resolve_power_credentials",
  needs: [],
  defaults: { timeout: seconds(60), maxRetries: 0 },
  parse: parseOnboarding,
  before: async () => ({}),
  act: async () => undefined,
  async probe(context) {
    return { state: "done", message: `as ${(await accountOfNode(context)).username}` };
  },
});

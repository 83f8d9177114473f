import { observe } from "../../../../kernel/effects.ts";
import { minutes } from "../../../../kernel/time/duration.ts";
import { fleetNodeLifecycle } from "../../../../lifecycles/fleet-node/lifecycle.ts";
import { defineStepOn, type ProbeReport } from "../../../model/step.ts";
import { type OnLeaving, parseLeaving, removalBegun } from "./on-leaving.ts";

/** Nobody speaks for the node any more, and nobody can enrol as it: its agent's token is revoked, its enrolment and the account of its BMC are forgotten. */
export const cleanupSecrets = defineStepOn<OnLeaving>()({
  kind: "cleanup_secrets",
  needs: [],
  defaults: { timeout: minutes(5), maxRetries: 2 },
  parse: parseLeaving,
  before: async () => ({}),
  announces: async ({ target }) => [removalBegun(target)],
  async act({ agent, forgetCredentials, target }) {
    await agent.dismiss();
    await forgetCredentials();
    return { effects: [observe(fleetNodeLifecycle, target.id, { enrollment: null })] };
  },
  probe: async ({ agent, target }): Promise<ProbeReport> =>
    (await agent.isEnrolled()) || target.facts.enrollment !== null
      ? { state: "not_done" }
      : { state: "done", message: "the credentials of the node are revoked" },
});

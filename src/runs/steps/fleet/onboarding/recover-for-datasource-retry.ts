import { seconds } from "../../../../kernel/time/duration.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { type ActingContext, defineStepOn, type ProbeReport } from "../../../model/step.ts";
import { drifted, notUsable, reachedBy } from "./maas-status.ts";
import {
  findBound,
  nameOf,
  type OnboardingPayload,
  type OnOnboarding,
  parseOnboarding,
  patiently,
  shownAs,
} from "./on-onboarding.ts";

/** A number, since names differ between versions of MAAS. */
const FAILED_RELEASING = 13;

type Receipt = { readonly released: true };
type Acting = ActingContext<OnboardingPayload, Record<never, never>, never, never, Receipt, OnOnboarding>;

/** Releases the machine, since MAAS deploys none whose deployment has failed. Nothing is erased: nothing was put there. */
export const recoverForDatasourceRetry = defineStepOn<OnOnboarding>()({
  kind: "recover_for_datasource_retry",
  needs: [],
  defaults: { timeout: seconds(1_200), maxRetries: 5 },
  parse: parseOnboarding,
  before: async () => ({}),
  async act(context): Promise<{ receipt: Receipt }> {
    const { maas, target, machine } = await findBound(context);
    await maas.release(target, machine.systemId, { erase: false, comment: "deploying it again" }, context.call);
    return { receipt: { released: true } };
  },
  probe: (context: Acting) =>
    patiently(async (): Promise<ProbeReport> => {
      const { machine } = await findBound(context);
      const message = shownAs(machine);
      if (machine.status === FAILED_RELEASING) {
        // Before this attempt has tried, a failure is that of another one.
        if (context.receipt === null) return { state: "not_done", message };
        throw failedAs("release_failed", `MAAS could not release ${nameOf(context.target)}: ${message}`, {
          shown: machine.statusName,
        });
      }
      switch (reachedBy(machine)) {
        case "editable":
          return { state: "done", message, facts: { deployOrderedAt: null } };
        case "moving":
          return {
            state: "in_progress",
            message,
            cause: { code: "release_failed", facts: { shown: machine.statusName } },
          };
        case "deploy_failed":
        case "allocated":
          return { state: "not_done", message };
        case "unusable":
          throw notUsable(machine);
        default:
          throw drifted(machine, "Failed deployment");
      }
    }),
});

import { StepFailure } from "../../../../kernel/errors.ts";
import { seconds } from "../../../../kernel/time/duration.ts";
import { type ActingContext, defineStepOn, type ProbeReport, type Undone } from "../../../model/step.ts";
import { notUsable, reachedBy } from "./maas-status.ts";
import {
  findBound,
  isWrongStatus,
  type OnboardingPayload,
  type OnOnboarding,
  parseOnboarding,
  patiently,
  shownAs,
} from "./on-onboarding.ts";

type Receipt = { readonly commissioned: true };
type Acting = ActingContext<OnboardingPayload, Record<never, never>, never, never, Receipt, OnOnboarding>;

/** Has MAAS commission the machine, unless it was commissioned before: then that is taken as it is. Cancelled, it aborts what is under way. */
export const commissionNode = defineStepOn<OnOnboarding>()({
  kind: "commission_node",
  needs: [],
  defaults: { timeout: seconds(300), maxRetries: 5 },
  parse: parseOnboarding,
  before: async () => ({}),

  async act(context): Promise<{ receipt: Receipt }> {
    const { maas, target, machine } = await findBound(context);
    try {
      await maas.commission(target, machine.systemId, context.call);
    } catch (error) {
      if (!isWrongStatus(error)) throw error;
      throw new StepFailure("changed_meanwhile", `MAAS does not commission it now: ${(error as Error).message}`);
    }
    return { receipt: { commissioned: true } };
  },

  probe: (context: Acting) =>
    patiently(async (): Promise<ProbeReport> => {
      const { machine } = await findBound(context);
      const reached = reachedBy(machine);
      if (reached === "unusable") throw notUsable(machine);
      // What was ordered and has failed since is for the stage that waits for it.
      if (reached !== "blank" || context.receipt !== null) return { state: "done", message: shownAs(machine) };
      return { state: "not_done", message: shownAs(machine) };
    }),

  async undo(context): Promise<Undone | undefined> {
    const { maas: site, target: node, call } = context;
    const { systemId } = node.facts;
    if (systemId === null) return undefined;
    const { maas, target } = await site({ evenDisabled: true });
    const machine = await maas.findMachine(target, systemId, call);
    if (machine === undefined || reachedBy(machine) !== "commissioning") return undefined;
    await maas.abort(target, systemId, "its onboarding was canceled", call);
    return undefined;
  },
  residue: () => "a commissioning in MAAS",
});

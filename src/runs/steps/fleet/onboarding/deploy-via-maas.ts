import { isRefusal } from "../../../../capabilities/device-failure.ts";
import { type Effect, observe } from "../../../../kernel/effects.ts";
import { messageOf, StepFailure } from "../../../../kernel/errors.ts";
import { seconds } from "../../../../kernel/time/duration.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { fleetNodeLifecycle } from "../../../../lifecycles/fleet-node/lifecycle.ts";
import {
  type ActingContext,
  defineStepOn,
  type ProbeReport,
  type ProbeState,
  type Undone,
} from "../../../model/step.ts";
import { drifted, notUsable, type Reached, reachedBy } from "./maas-status.ts";
import {
  type Bound,
  findBound,
  isWrongStatus,
  type OnboardingPayload,
  type OnOnboarding,
  parseOnboarding,
  patiently,
  shownAs,
} from "./on-onboarding.ts";
import { issueFor, renderUserData } from "./render-cloud-init.ts";

/** released: what had failed was released first, and the deployment is still to be ordered. */
type Receipt = { readonly order: "released" | "deployed" };
/** How far MAAS had led the machine. */
type Evidence = { readonly was: Reached };
type Acting = ActingContext<OnboardingPayload, Evidence, never, never, Receipt, OnOnboarding>;

/**
 * Orders the deployment. A machine that is deployed already, by whomever, is taken over only where somebody asked for that (rerun, adopt), or
 * where it was the node's own job that ordered it. MAAS deploys no machine whose deployment has failed: that is released first.
 */
export const deployViaMaas = defineStepOn<OnOnboarding>()({
  kind: "deploy_via_maas",
  needs: [],
  defaults: { timeout: seconds(600), maxRetries: 5 },
  parse: parseOnboarding,
  before: async (context): Promise<Evidence> => ({ was: reachedBy((await findBound(context)).machine) }),
  /** The token may be too old by now for a whole deployment: then the next one is put on record. */
  async announces(context): Promise<readonly Effect[]> {
    const { target: node, clock } = context;
    const { machine } = await findBound(context);
    if (isStrange(context, reachedBy(machine))) throw drifted(machine, "Ready, since this job has not deployed it");
    const { enrollment } = issueFor(context);
    return [observe(fleetNodeLifecycle, node.id, { deployOrderedAt: clock.now().toISOString(), enrollment })];
  },

  async act(context): Promise<{ receipt: Receipt }> {
    const bound = await findBound(context);
    if (reachedBy(bound.machine) !== "deploy_failed") return order(context, bound);
    await bound.maas.release(
      bound.target,
      bound.machine.systemId,
      { erase: false, comment: "deploying it again" },
      context.call,
    );
    return { receipt: { order: "released" } };
  },
  async carryOn(context: Acting) {
    return order(context, await findBound(context));
  },

  probe: (context: Acting) =>
    patiently(async (): Promise<ProbeReport> => {
      const { machine } = await findBound(context);
      const reached = reachedBy(machine);
      if (reached === "unusable") throw notUsable(machine);
      return { state: stateOf(context, reached), message: shownAs(machine) };
    }),

  observe: async (context) => {
    const reached = reachedBy((await findBound(context)).machine);
    return reached === "deploying" || reached === "deployed" ? "done" : "not_done";
  },

  async undo(context): Promise<Undone | undefined> {
    const { maas: site, target: node, call } = context;
    const { systemId } = node.facts;
    if (systemId === null) return undefined;
    const { maas, target } = await site({ evenDisabled: true });
    const machine = await maas.findMachine(target, systemId, call);
    const forgotten = { facts: { deployOrderedAt: null } };
    if (machine === undefined) return forgotten;
    switch (reachedBy(machine)) {
      case "moving":
        return { goesOn: `MAAS releases ${systemId}: ${machine.statusName}` };
      case "allocated":
      case "deploying":
      case "deployed":
      case "deploy_failed":
        await maas.release(target, systemId, { erase: false, comment: "its onboarding is undone" }, call);
        return { goesOn: `MAAS releases ${systemId}` };
      default:
        return forgotten;
    }
  },
  residue: () => "a deployment in MAAS",
});

/** Somebody else has deployed it, or leads it elsewhere: a job that nobody asked to adopt that begins nothing with it. */
const isStrange = ({ target: { facts } }: Pick<Acting, "target">, reached: Reached): boolean =>
  reached === "blank" ||
  (facts.deployOrderedAt === null &&
    (reached === "deploying" || reached === "deployed" || reached === "deploy_failed"));

function stateOf(context: Acting, reached: Reached): ProbeState {
  const { receipt, evidence, actingAt = null } = context;
  if (actingAt === null && isStrange(context, reached)) return "not_done"; // its announcement says why it is not begun
  switch (reached) {
    case "deploying":
    case "deployed":
      return "done";
    case "deploy_failed": // what came of it is for the stages after this one
      return receipt?.order === "deployed" || (actingAt !== null && evidence.was !== "deploy_failed")
        ? "done"
        : "not_done";
    case "moving":
    case "commissioning":
      return "in_progress";
    default:
      return receipt?.order === "released" ? "halfway" : "not_done";
  }
}

async function order(
  context: Omit<Acting, "receipt">,
  { maas, target, machine }: Bound,
): Promise<{ receipt: Receipt }> {
  const { payload, call, target: node, runId } = context;
  const { distro_series: distroSeries, require_hw_sync: hardwareSync } = payload.policy;
  const comment = `onboarding of ${node.id} (${runId})`;
  try {
    const wanted = { userData: await renderUserData(context), distroSeries, hardwareSync, comment };
    await maas.deploy(target, machine.systemId, wanted, call);
  } catch (error) {
    if (isWrongStatus(error))
      throw new StepFailure("changed_meanwhile", `MAAS does not deploy it now: ${messageOf(error)}`);
    if (!isRefusal(error)) throw error;
    const images = await maas.listImages(target, call);
    if (distroSeries !== null && !images.some((image) => image.split("/").at(-1) === distroSeries.split("/").at(-1)))
      throw failedAs("image_missing", messageOf(error), { name: distroSeries });
    throw failedAs("deploy_failed", messageOf(error), { shown: machine.statusName });
  }
  return { receipt: { order: "deployed" } };
}

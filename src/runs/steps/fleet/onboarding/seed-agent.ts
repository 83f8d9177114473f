import type { MaasMachine } from "../../../../capabilities/fleet/maas-machine.ts";
import { type Effect, observe } from "../../../../kernel/effects.ts";
import { messageOf, StepFailure } from "../../../../kernel/errors.ts";
import type { Enrollment } from "../../../../lifecycles/fleet-node/fleet-node.ts";
import { fleetNodeLifecycle } from "../../../../lifecycles/fleet-node/lifecycle.ts";
import type { Acted } from "../../../model/step.ts";
import { findBound, type Onboarding } from "./on-onboarding.ts";
import { issueFor } from "./render-cloud-init.ts";

/** How far the agent's installation over SSH is, once its enrolment has timed out. */
export type Seeding = {
  readonly failures: number;
  readonly isDone: boolean;
  /** Why the last try failed; empty before. */
  readonly why: string;
};
export const MOST_SEED_FAILURES = 2;

/** Whether the profile lets us sign in to the installed system, and MAAS tells where it is. */
export const maySeed = ({ payload, target }: Pick<Onboarding, "payload" | "target">): boolean =>
  payload.policy.ssh_username !== null && target.facts.systemId !== null;

/**
 * Installs the agent by hand where cloud-init has not: first another token is put on record, then the system is signed in to and told it.
 * Doing it again leaves the same behind. What fails is counted, and is no failure of the stage until it has failed twice.
 */
export async function seedAgent(context: Onboarding, before: Seeding | null): Promise<Acted<Seeding>> {
  const { target: node, enrolment, payload, call, log } = context;
  const seeding = before ?? { failures: 0, isDone: false, why: "" };
  const { token, enrollment } = issueFor(context);
  if (enrollment.issue !== node.facts.enrollment?.issue)
    return { receipt: seeding, effects: [observe(fleetNodeLifecycle, node.id, { enrollment })] };
  try {
    const { machine } = await findBound(context);
    const address = addressOf(machine, await context.roceLinks());
    if (address === undefined)
      throw new StepFailure("endpoint_missing", "MAAS tells no address", { facts: { at: "ssh" } });
    await enrolment.seed({ address, username: payload.policy.ssh_username ?? "", token }, call);
    log(`[agent] installed over SSH at ${address}\n`);
    return { receipt: { ...seeding, isDone: true } };
  } catch (error) {
    if (!(error instanceof StepFailure) || call.signal.aborted) throw error;
    log(`[agent] not installed over SSH: ${messageOf(error)}\n`, "stderr");
    const receipt = { ...seeding, failures: seeding.failures + 1, why: messageOf(error) };
    return receipt.failures < MOST_SEED_FAILURES ? { receipt } : { receipt, effects: [voided(context, enrollment)] };
  }
}

/** Who mends the way to the node and retries the stage does not wait for the end of a token that nobody was told. */
const voided = ({ target: node, clock }: Onboarding, enrollment: Enrollment): Effect =>
  observe(fleetNodeLifecycle, node.id, { enrollment: { ...enrollment, expiresAt: clock.now().toISOString() } });

/** Where the machine was booted from the network it is reached; an address of a RoCE port leads to a fabric of its own. */
function addressOf(
  { ipAddresses, interfaces, bootInterfaceId }: MaasMachine,
  roce: readonly { readonly ipAddress: string }[],
): string | undefined {
  const open = ipAddresses.filter((address) => !roce.some(({ ipAddress }) => ipAddress === address));
  const links = interfaces.find(({ id }) => id === bootInterfaceId)?.links ?? [];
  return open.find((address) => links.some(({ ipAddress }) => ipAddress === address)) ?? open[0];
}

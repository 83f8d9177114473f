import { type Effect, observe } from "../../../../kernel/effects.ts";
import { seconds } from "../../../../kernel/time/duration.ts";
import { failedAs } from "../../../../lifecycles/fleet-node/failure-classes.ts";
import { fleetNodeLifecycle } from "../../../../lifecycles/fleet-node/lifecycle.ts";
import { type ActingContext, defineStepOn, type ProbeReport } from "../../../model/step.ts";
import { type Onboarding, type OnboardingPayload, type OnOnboarding, parseOnboarding } from "./on-onboarding.ts";
import { MOST_SEED_FAILURES, maySeed, type Seeding, seedAgent } from "./seed-agent.ts";

/** Until when the token was good when the stage began. */
type Evidence = { readonly issue: number; readonly expiresAt: string };
type Acting = ActingContext<OnboardingPayload, Evidence, never, never, Seeding, OnOnboarding>;

/**
 * Waits until the agent has enrolled with the token of the node and reports that the node is healthy. A token that ran out before is good
 * again for its usual time: it is entered with an expired token only where a person asked for it once more.
 */
export const waitForAgentEnrollment = defineStepOn<OnOnboarding>()({
  kind: "wait_for_agent_enrollment",
  needs: [],
  defaults: { timeout: seconds(3_600), maxRetries: 0 },
  // Where it may be installed over SSH, the agent has the time of a second token, and of what lies between the two.
  timeoutFor(payload) {
    const { enrollment_token_ttl_seconds: ttl, ssh_username } = parseOnboarding(payload).policy;
    return seconds(ssh_username === null ? ttl : 3 * ttl);
  },
  actsByEffectsOnly: true,
  parse: parseOnboarding,
  async before(context): Promise<Evidence> {
    const { enrollment } = context.target.facts;
    return { issue: enrollment?.issue ?? 0, expiresAt: enrollment?.expiresAt ?? "" };
  },
  carryOn: (context: Acting) => seedAgent(context, context.receipt),
  act: async (context) => ({ effects: reopened(context) }),
  async probe(context: Acting): Promise<ProbeReport> {
    const { target: node, agent, actingAt = null } = context;
    const { enrollment } = node.facts;
    const isEnrolled = (enrollment?.consumedAt ?? null) !== null && (await agent.isEnrolled());
    if (!isEnrolled && isExpired(context) && actingAt === null)
      return { state: "not_done", message: "its enrolment token has expired" };
    if (!isEnrolled) return seedingOf(context) ?? waiting("its agent has not enrolled yet");
    const heard = await agent.lastHeard();
    if (heard?.health === "healthy")
      return { state: "done", message: "its agent has enrolled, and reports that the node is healthy" };
    if (heard === null || heard.health === null)
      return waiting("its agent has enrolled, and has not said how the node is");
    return waiting(`its agent reports that the node is unhealthy: ${heard.message}`);
  },
});

/** What is to be done over SSH, once the token has run out for the first time; undefined: nothing. */
function seedingOf(context: Acting): ProbeReport | undefined {
  const { receipt: seeding } = context;
  if (!maySeed(context) || seeding?.isDone || (seeding === null && !isExpired(context))) return undefined;
  if (seeding !== null && seeding.failures >= MOST_SEED_FAILURES)
    throw failedAs("ssh_seed_failed", `the agent could not be installed over SSH either: ${seeding.why}`, {});
  return { state: "halfway", message: "its agent has not enrolled in time, and is installed over SSH" };
}

const waiting = (message: string): ProbeReport => ({
  state: "in_progress",
  message,
  cause: { code: "enrollment_timed_out" },
});

const isExpired = ({ target: { facts }, clock }: Onboarding): boolean =>
  facts.enrollment !== null && Date.parse(facts.enrollment.expiresAt) <= clock.now().getTime();

function reopened(context: Onboarding): readonly Effect[] {
  const { target: node, clock, payload } = context;
  const { enrollment } = node.facts;
  // Where the agent may be installed over SSH, that follows at once, with a token of its own.
  if (enrollment === null || enrollment.consumedAt !== null || maySeed(context)) return [];
  const expiresAt = new Date(clock.now().getTime() + payload.policy.enrollment_token_ttl_seconds * 1_000).toISOString();
  return [observe(fleetNodeLifecycle, node.id, { enrollment: { ...enrollment, expiresAt } })];
}

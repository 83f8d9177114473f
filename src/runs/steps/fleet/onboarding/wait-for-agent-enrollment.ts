import { type Effect, observe } from "../../../../kernel/effects.ts";
import { seconds } from "../../../../kernel/time/duration.ts";
import { fleetNodeLifecycle } from "../../../../lifecycles/fleet-node/lifecycle.ts";
import { type ActingContext, defineStepOn, type ProbeReport } from "../../../model/step.ts";
import { type Onboarding, type OnboardingPayload, type OnOnboarding, parseOnboarding } from "./on-onboarding.ts";

/** Until when the token was good when the stage began. */
type Evidence = { readonly issue: number; readonly expiresAt: string };
type Acting = ActingContext<OnboardingPayload, Evidence, never, never, Record<never, never>, OnOnboarding>;

/**
 * Waits until the agent has enrolled with the token of the node and reports that the node is healthy. A token that ran out before is good
 * again for its usual time: it is entered with an expired token only where a person asked for it once more.
 */
export const waitForAgentEnrollment = defineStepOn<OnOnboarding>()({
  kind: "wait_for_agent_enrollment",
  needs: [],
  defaults: { timeout: seconds(3_600), maxRetries: 0 },
  timeoutFor: (payload) => seconds(parseOnboarding(payload).policy.enrollment_token_ttl_seconds),
  actsByEffectsOnly: true,
  parse: parseOnboarding,
  async before(context): Promise<Evidence> {
    const { enrollment } = context.target.facts;
    return { issue: enrollment?.issue ?? 0, expiresAt: enrollment?.expiresAt ?? "" };
  },
  act: async (context) => ({ effects: reopened(context) }),
  async probe(context: Acting): Promise<ProbeReport> {
    const { target: node, agent, actingAt = null } = context;
    const { enrollment } = node.facts;
    const isEnrolled = (enrollment?.consumedAt ?? null) !== null && (await agent.isEnrolled());
    if (!isEnrolled)
      return isExpired(context) && actingAt === null
        ? { state: "not_done", message: "its enrolment token has expired" }
        : waiting("its agent has not enrolled yet");
    const heard = await agent.lastHeard();
    if (heard?.health === "healthy")
      return { state: "done", message: "its agent has enrolled, and reports that the node is healthy" };
    if (heard === null || heard.health === null)
      return waiting("its agent has enrolled, and has not said how the node is");
    return waiting(`its agent reports that the node is unhealthy: ${heard.message}`);
  },
});

const waiting = (message: string): ProbeReport => ({
  state: "in_progress",
  message,
  cause: { code: "enrollment_timed_out" },
});

const isExpired = ({ target: { facts }, clock }: Onboarding): boolean =>
  facts.enrollment !== null && Date.parse(facts.enrollment.expiresAt) <= clock.now().getTime();

function reopened({ target: node, clock, payload }: Onboarding): readonly Effect[] {
  const { enrollment } = node.facts;
  if (enrollment === null || enrollment.consumedAt !== null) return [];
  const expiresAt = new Date(clock.now().getTime() + payload.policy.enrollment_token_ttl_seconds * 1_000).toISOString();
  return [observe(fleetNodeLifecycle, node.id, { enrollment: { ...enrollment, expiresAt } })];
}

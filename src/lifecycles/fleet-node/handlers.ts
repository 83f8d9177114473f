import type { CreateEffect } from "../../kernel/effects.ts";
import { type Handlers, happened, nothingToDo, waitFor } from "../../kernel/outcome.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { hours, milliseconds } from "../../kernel/time/duration.ts";
import type { FleetNode } from "./fleet-node.ts";
import type { fleetNodeLifecycle } from "./lifecycle.ts";

export interface FleetNodeContext {
  readonly clock: Clock;
  /** The job of a manual node whose agent has enrolled; asked for twice with one issue of its token, it is one. Absent: there are no runs. */
  readonly startOnboarding?: (node: FleetNode) => Promise<CreateEffect>;
}

/** Its agent has enrolled by a bundle that its owner was given: from then on a job onboards it. */
export const hasEnrolled = ({ mode, facts: { enrollment } }: FleetNode): boolean =>
  mode === "manual" && enrollment !== null && enrollment.consumedAt !== null;

/** A pass finds nothing to do where a job moves the node; without one that is due, the node would count as stranded. */
const PASSES_EVERY = hours(1);
const movedByItsJob = async () => nothingToDo(PASSES_EVERY);

const onboard = async (node: FleetNode, { startOnboarding }: FleetNodeContext) =>
  nothingToDo(null, startOnboarding && { effects: [await startOnboarding(node)] });

/** Runs move nodes, and so do callers and the reconciler. The node itself only sees to it that a bundle that nobody used expires. */
export const fleetNodeHandlers: Handlers<typeof fleetNodeLifecycle, FleetNode, FleetNodeContext> = {
  async bootstrap_issued(node, context) {
    if (hasEnrolled(node)) return onboard(node, context);
    const { clock } = context;
    const { enrollment } = node.facts;
    const left = enrollment === null ? 0 : Date.parse(enrollment.expiresAt) - clock.now().getTime();
    if (left > 0) return waitFor("its agent enrols with the token of the bundle", milliseconds(left));
    const message = "nobody enrolled before the bootstrap bundle expired";
    return happened("bundle_expired", { message, followedBy: [{ event: "bundle_expired", message }] });
  },
  enrolling: movedByItsJob,
  draining: movedByItsJob,
  removing: movedByItsJob,
  /** Its bundle had expired, and another one was issued. */
  quarantined: async (node, context) => (hasEnrolled(node) ? onboard(node, context) : nothingToDo(null)),
};

import { type Handlers, happened, nothingToDo, waitFor } from "../../kernel/outcome.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { milliseconds } from "../../kernel/time/duration.ts";
import type { FleetNode } from "./fleet-node.ts";
import type { fleetNodeLifecycle } from "./lifecycle.ts";

export interface FleetNodeContext {
  readonly clock: Clock;
}

/** Runs move nodes, and so do callers and the reconciler. The node itself only sees to it that a bundle that nobody used expires. */
export const fleetNodeHandlers: Handlers<typeof fleetNodeLifecycle, FleetNode, FleetNodeContext> = {
  async bootstrap_issued({ facts: { enrollment } }, { clock }) {
    const left = enrollment === null ? 0 : Date.parse(enrollment.expiresAt) - clock.now().getTime();
    if (left > 0) return waitFor("its agent enrols with the token of the bundle", milliseconds(left));
    const message = "nobody enrolled before the bootstrap bundle expired";
    return happened("bundle_expired", { message, followedBy: [{ event: "bundle_expired", message }] });
  },
  enrolling: async () => nothingToDo(null),
};

import type { CallContext } from "../../capabilities/call.ts";
import { type Handlers, happened, waitFor } from "../../kernel/outcome.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { milliseconds } from "../../kernel/time/duration.ts";
import type { FleetTask } from "./fleet-task.ts";
import type { fleetTaskLifecycle } from "./lifecycle.ts";

export interface FleetTaskContext {
  readonly call: CallContext;
  readonly clock: Pick<Clock, "now">;
}

/** Agents move tasks; what is left for the engine is to give up on agents that do not. */
export const fleetTaskHandlers: Handlers<typeof fleetTaskLifecycle, FleetTask, FleetTaskContext> = {
  async queued({ nodeId, expiresAt }, { clock }) {
    const now = clock.now();
    const left = expiresAt.getTime() - now.getTime();
    if (left > 0) return waitFor(`waits for the agent of node ${nodeId}`, milliseconds(left));
    return happened("ttl_elapsed", { message: "no agent took it in time", data: { at: now.toISOString() } });
  },

  async dispatched({ nodeId, facts: { leaseUntil } }, { clock }) {
    const now = clock.now();
    const left = (leaseUntil === null ? 0 : Date.parse(leaseUntil)) - now.getTime();
    if (left > 0) return waitFor(`the agent of node ${nodeId} works on it`, milliseconds(left));
    const message = "the agent that took it has fallen silent: nobody knows how far it came";
    return happened("lease_elapsed", { message, data: { at: now.toISOString() } });
  },
};

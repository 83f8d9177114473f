import type { CallContext } from "../../capabilities/call.ts";
import type { AllocationOrder, Allocator } from "../../capabilities/fleet/allocator.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { type Handlers, happened, waitFor } from "../../kernel/outcome.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import type { FleetAllocation } from "./fleet-allocation.ts";
import type { fleetAllocationLifecycle } from "./lifecycle.ts";

export interface FleetAllocationContext {
  readonly call: CallContext;
  /** Absent: nobody outside prepares nodes, so that one that is active is ready, and nothing is cleaned up behind its users. */
  readonly allocator?: Allocator;
}

const ASKED_EVERY: Duration = seconds(10);

/** The states of nodes from which they come into use by themselves. */
const MAY_STILL_COME: readonly string[] = ["enrolling", "offline"];

export const fleetAllocationHandlers: Handlers<
  typeof fleetAllocationLifecycle,
  FleetAllocation,
  FleetAllocationContext
> = {
  requested: async () => happened("picked_up"),

  async provisioning(allocation, { call, allocator }) {
    const node = allocation.related?.node ?? null;
    if (node?.state !== "active") {
      if (node !== null && MAY_STILL_COME.includes(node.state))
        return waitFor(`fleet node ${node.id} is ${node.state}`, ASKED_EVERY);
      throw new StepFailure(
        "target_gone",
        node === null
          ? `fleet node ${allocation.node} does not exist`
          : `fleet node ${node.id} is ${node.state}: nobody gets it`,
        { facts: { what: "fleet node", name: allocation.node } },
      );
    }
    if (!allocator) return happened("agent_ready");
    const { state, message } = await allocator.provision(orderOf(allocation), call);
    if (state === "done") return happened("agent_ready", { ...(message !== "" && { message }) });
    return waitFor(message === "" ? "the allocator prepares the node" : message, ASKED_EVERY);
  },

  async releasing(allocation, { call, allocator }) {
    if (!allocator) return happened("cleanup_proven");
    const force = allocation.state.force === true;
    const { state, message } = await allocator.release({ ...orderOf(allocation), force }, call);
    if (state === "done") return happened("cleanup_proven", { ...(message !== "" && { message }) });
    return waitFor(message === "" ? "the allocator cleans up" : message, ASKED_EVERY);
  },
};

const orderOf = ({ id, node, hostname, tenant }: FleetAllocation): AllocationOrder => ({ id, node, hostname, tenant });

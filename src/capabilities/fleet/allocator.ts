import type { CallContext } from "../call.ts";

/** An allocation as an outside allocator is told of it. */
export interface AllocationOrder {
  readonly id: string;
  /** The fleet node. */
  readonly node: string;
  readonly hostname: string;
  readonly tenant: string;
}

export interface ReleaseAllocationOrder extends AllocationOrder {
  /** An administrator asks for it: whoever uses the node is not waited for. */
  readonly force: boolean;
}

/** How far the allocator is. It is asked the same again until it is done. */
export interface AllocatorAnswer {
  readonly state: "done" | "in_progress";
  /** What it says of it, for people; empty for nothing. */
  readonly message: string;
}

/**
 * A service outside that prepares nodes for those who use them, and cleans up behind them. Both calls say what is wanted of one allocation,
 * and are repeated as they are: asked twice, it does it once.
 *
 * @throws DeviceFailure "retry" when it cannot be reached or is busy; "fail" when it refuses.
 */
export interface Allocator {
  provision(order: AllocationOrder, call: CallContext): Promise<AllocatorAnswer>;
  /** An allocation that it does not know is released. */
  release(order: ReleaseAllocationOrder, call: CallContext): Promise<AllocatorAnswer>;
}

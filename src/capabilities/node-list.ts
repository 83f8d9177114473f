import type { CallContext } from "./call.ts";
import type { ClusterTarget } from "./cluster-target.ts";

/** A node with everything by which it can be told to be a machine. */
export interface ListedNode {
  readonly name: string;
  readonly ready: boolean;
  /** Why it is not ready, in the cluster's words; empty when it is. */
  readonly reason: string;
  readonly unschedulable: boolean;
  readonly systemUuid: string | null;
  readonly serial: string | null;
  readonly addresses: readonly string[];
  readonly bootId: string | null;
}

/**
 * Reading many nodes at once: one list serves all machines of a cluster. Changes nothing.
 *
 * @throws StepFailure "retry" when the API cannot be reached or is busy, "fail" when it refuses for good.
 */
export interface NodeList {
  listNodes(target: ClusterTarget, call: CallContext): Promise<readonly ListedNode[]>;
  /** What a drain would still have to move away, by namespace and name; daemons and static pods do not count. */
  listWorkloads(target: ClusterTarget, nodeName: string, call: CallContext): Promise<readonly string[]>;
  /** Those of them that are told to end already: the kubelet of a dead node never confirms it. */
  listGoing(target: ClusterTarget, nodeName: string, call: CallContext): Promise<readonly string[]>;
}

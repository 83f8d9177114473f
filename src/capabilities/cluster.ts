import type { Duration } from "../kernel/time/duration.ts";
import type { CallContext } from "./call.ts";
import type { ClusterTarget } from "./cluster-target.ts";
import type { NodeMark } from "./clusters/node-identity.ts";

/** By what a node is told to be a machine. A name alone proves nothing. */
export interface NodeIdentity {
  readonly systemUuid: string | null;
  readonly serial: string | null;
  readonly addresses: readonly string[];
}

export interface ClusterNode {
  readonly name: string;
  /** Another one when the node was deleted and came back. */
  readonly uid: string;
  readonly ready: boolean;
  /** Why it is not ready, in the cluster's words; empty when it is. */
  readonly reason: string;
  readonly unschedulable: boolean;
  /** Whether it was `setSchedulable` that cordoned it, and not somebody else; absent where nobody can tell. */
  readonly cordonedByUs?: boolean;
  readonly systemUuid: string | null;
  readonly bootId: string | null;
  readonly kubeletVersion: string | null;
  readonly matchedBy: NodeMark;
}

/** What a machine needs to join: short-lived and secret. */
export interface JoinMaterial {
  /** `host:port` of the cluster's API, as nodes reach it. */
  readonly endpoint: string;
  readonly token: string;
  /** `sha256:…` of the authority's public key, by which the node knows the cluster. */
  readonly caCertHash: string;
  readonly expiresAt: Date;
}

/** What to mint. */
export interface WantedToken {
  /** `[a-z0-9]{6}`, not secret: the caller notes it first, so that whoever carries on can revoke the token. */
  readonly id: string;
  readonly lifetime: Duration;
}

/** What a drain moves away only where it was asked for, as `kubectl drain` does. */
export interface DrainScope {
  /** Pods that no controller starts again elsewhere (`kubectl drain --force`). */
  readonly barePods: boolean;
  /** Pods whose data in an emptyDir volume is lost when they go (`--delete-emptydir-data`). */
  readonly localData: boolean;
}

/** What still runs on a node that is being emptied; daemons, static pods and finished pods do not count. */
export interface DrainProgress {
  readonly remaining: readonly string[];
  /** Of those, the ones that the cluster does not let go now. They are asked again with the next call. */
  readonly refused: readonly RefusedEviction[];
}

export interface RefusedEviction {
  readonly pod: string;
  /**
   * A disruption budget keeps it, until others of its kind run elsewhere; the cluster has another reason; or it was not asked to go,
   * since no controller would start it again (`bare`) or its data would be lost (`local_data`).
   */
  readonly by: "disruption_budget" | "cluster" | "bare" | "local_data";
  /** In the cluster's words; empty when it gives none. */
  readonly why: string;
}

/**
 * A cluster that machines join and leave. Every call is idempotent. What `mintJoin` leaves is a token that expires by itself.
 *
 * @throws StepFailure "retry" when the API cannot be reached or is busy, "fail" when it refuses for good.
 */
export interface Cluster {
  /** A token of the same id that an earlier call left is replaced: its secret was lost with that call. */
  mintJoin(target: ClusterTarget, wanted: WantedToken, call: CallContext): Promise<JoinMaterial>;
  /** Removes a token, also one that is not there any more. */
  revokeJoin(target: ClusterTarget, tokenId: string, call: CallContext): Promise<void>;
  findNode(target: ClusterTarget, identity: NodeIdentity, call: CallContext): Promise<ClusterNode | undefined>;
  /**
   * Cordoning leaves a mark on the node, by which it is told from somebody else's; uncordoning takes it away. What a maintenance has
   * cordoned (the usual) no script of a run gives back.
   */
  setSchedulable(
    target: ClusterTarget,
    nodeName: string,
    schedulable: boolean,
    call: CallContext,
    by?: "maintenance" | "run",
  ): Promise<void>;
  /**
   * Asks once for everything on the node to go, and says what is still there. Called until nothing is. One that does not go keeps no
   * other from going.
   */
  drain(target: ClusterTarget, nodeName: string, call: CallContext, scope: DrainScope): Promise<DrainProgress>;
}

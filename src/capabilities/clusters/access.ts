import type { CallContext } from "../call.ts";
import type { ClusterTarget } from "../cluster-target.ts";

/** What a kubeconfig's user may have to do in a cluster, in the words of Kubernetes. */
export const CLUSTER_RIGHTS = {
  list_nodes: "list nodes",
  patch_nodes: "patch nodes",
  list_pods: "list pods in all namespaces",
  evict_pods: "create pods/eviction in all namespaces",
  mint_tokens: "create secrets in kube-system",
  remove_tokens: "delete secrets in kube-system",
  read_cluster_info: "read cluster-info in kube-public, which kubeadm publishes",
} as const;
export type ClusterRight = keyof typeof CLUSTER_RIGHTS;

export interface ClusterReport {
  /** What the user may not do. A right that the cluster does not tell of counts as there. */
  readonly missing: readonly ClusterRight[];
}

/**
 * Trying a kubeconfig before anything depends on it. Changes nothing.
 *
 * @throws StepFailure "retry" when the API cannot be reached or is busy, "fail" when it does not let us in or is not the one that
 * the kubeconfig describes.
 */
export interface ClusterAccess {
  probe(target: ClusterTarget, call: CallContext): Promise<ClusterReport>;
}

import type { CallContext } from "../../capabilities/call.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import type { ClusterAccess, ClusterRight } from "../../capabilities/clusters/access.ts";
import { DeviceFailure, isForbidden, isRefusal } from "../../capabilities/device-failure.ts";
import { valueAt } from "../transport/device-json.ts";
import type { KubernetesClient } from "./client.ts";
import { readClusterInfo } from "./cluster-info.ts";

const REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/** What is asked of the cluster's own judgement: a right that is tried out would have to be used. */
const REVIEWED = {
  patch_nodes: { verb: "patch", resource: "nodes" },
  list_pods: { verb: "list", resource: "pods" },
  evict_pods: { verb: "create", resource: "pods", subresource: "eviction" },
  mint_tokens: { verb: "create", resource: "secrets", namespace: "kube-system" },
  remove_tokens: { verb: "delete", resource: "secrets", namespace: "kube-system" },
} as const satisfies { readonly [R in ClusterRight]?: object };

export function createClusterAccess(client: KubernetesClient): ClusterAccess {
  return {
    async probe(target, call) {
      // First, and alone: it tells whether we are let in at all, and by whom.
      const nodes = await isAllowed(() =>
        client.send(target, { method: "GET", path: "/api/v1/nodes", query: { limit: "1" } }, call),
      );
      const reviewed = Object.entries(REVIEWED).map(
        async ([right, wanted]) => [right as ClusterRight, await review(client, target, wanted, call)] as const,
      );
      const info = async () => ["read_cluster_info", await isJoinable(client, target, call)] as const;
      const held = [["list_nodes", nodes] as const, ...(await Promise.all([...reviewed, info()]))];
      return { missing: held.filter(([, isHeld]) => !isHeld).map(([right]) => right) };
    },
  };
}

async function isAllowed(ask: () => Promise<unknown>): Promise<boolean> {
  try {
    await ask();
    return true;
  } catch (error) {
    if (isForbidden(error)) return false;
    throw error;
  }
}

/** A cluster that publishes nothing can be worked with all the same, but for joining it. */
async function isJoinable(client: KubernetesClient, target: ClusterTarget, call: CallContext): Promise<boolean> {
  try {
    return await isAllowed(() => readClusterInfo(client, target, call));
  } catch (error) {
    if (error instanceof DeviceFailure && error.family === "odd" && error.disposition === "fail") return false;
    throw error;
  }
}

/** Every user may ask this of itself, unless somebody took that right away: then nobody can tell beforehand. */
async function review(
  client: KubernetesClient,
  target: ClusterTarget,
  resourceAttributes: object,
  call: CallContext,
): Promise<boolean> {
  const body = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes },
  };
  try {
    const answer = await client.send(target, { method: "POST", path: REVIEWS, body }, call);
    return valueAt(answer, "status", "allowed") !== false;
  } catch (error) {
    if (isForbidden(error) || isRefusal(error)) return true;
    throw error;
  }
}

import type { CallContext } from "../../capabilities/call.ts";
import type { Cluster, ClusterNode, NodeIdentity, RefusedEviction } from "../../capabilities/cluster.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { type Clock, systemClock } from "../../kernel/time/clock.ts";
import type { Resource } from "../transport/device-json.ts";
import type { KubernetesClient } from "./client.ts";
import { bootstrapSecret, caCertHash, newBootstrapToken, readClusterInfo } from "./join-material.ts";
import { forEachNode, listLeaving } from "./node-list.ts";
import { CORDONED_BY_US, CORDONED_FOR_MAINTENANCE, describeNode, matchOf, nameOfPod, textAt } from "./nodes.ts";

const CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info";

export function createCluster(client: KubernetesClient, clock: Clock = systemClock): Cluster {
  const nodePath = (name: string) => `/api/v1/nodes/${encodeURIComponent(name)}`;

  return {
    async mintJoin(target, lifetime, call) {
      const info = await readInfo(client, target, call);
      const token = newBootstrapToken();
      const expiresAt = new Date(clock.now().getTime() + lifetime);
      const path = "/api/v1/namespaces/kube-system/secrets";
      await client.send(target, { method: "POST", path, body: bootstrapSecret(token, expiresAt) }, call);
      return {
        endpoint: info.endpoint,
        token: `${token.id}.${token.secret}`,
        caCertHash: caCertHash(info.ca),
        expiresAt,
      };
    },

    findNode: (target, identity, call) => findNode(client, target, identity, call),

    async setSchedulable(target, nodeName, schedulable, call) {
      const mark = schedulable ? null : "true";
      const annotations = { [CORDONED_BY_US]: mark, [CORDONED_FOR_MAINTENANCE]: mark };
      const body = { metadata: { annotations }, spec: { unschedulable: schedulable ? null : true } };
      await client.send(target, { method: "PATCH", path: nodePath(nodeName), body }, call);
    },

    async drain(target, nodeName, call) {
      const leaving = await listLeaving(client, target, nodeName, call);
      const refused: RefusedEviction[] = [];
      for (const pod of leaving) {
        const refusal = await evict(client, target, pod, call);
        if (refusal) refused.push(refusal);
      }
      return { remaining: leaving.map(nameOfPod), refused };
    },

    async deleteNode(target, nodeName, call) {
      await client.find(target, { method: "DELETE", path: nodePath(nodeName) }, call);
    },
  };
}

async function readInfo(client: KubernetesClient, target: ClusterTarget, call: CallContext) {
  const map = await client.find(target, { method: "GET", path: CLUSTER_INFO }, call);
  const kubeconfig = textAt(map, "data", "kubeconfig");
  const info = kubeconfig === undefined ? undefined : readClusterInfo(kubeconfig);
  if (info !== undefined) return info;
  throw new DeviceFailure(
    "protocol",
    "cluster",
    `cluster ${target.name} does not publish how to join it (cluster-info in kube-public). Was it set up with kubeadm?`,
    { disposition: "fail" },
  );
}

/** The one node that is this machine. Two that both claim to be are an answer nobody can act on. */
async function findNode(
  client: KubernetesClient,
  target: ClusterTarget,
  identity: NodeIdentity,
  call: CallContext,
): Promise<ClusterNode | undefined> {
  const found: ClusterNode[] = [];
  await forEachNode(client, target, call, (node) => {
    const matchedBy = matchOf(node, identity);
    if (matchedBy !== undefined) found.push(describeNode(node, matchedBy));
  });
  const best = (["system_uuid", "serial", "address"] as const)
    .map((mark) => found.filter(({ matchedBy }) => matchedBy === mark))
    .find((matches) => matches.length > 0);
  if (best === undefined || best.length === 1) return best?.[0];
  throw new DeviceFailure(
    "protocol",
    "cluster",
    `cluster ${target.name} has ${best.length} nodes that are this machine by ${best[0]?.matchedBy}: ${best.map(({ name }) => name).join(", ")}. Delete the stale one`,
    { disposition: "fail" },
  );
}

/** Why the pod may not go now; undefined when it goes. */
async function evict(
  client: KubernetesClient,
  target: ClusterTarget,
  pod: Resource,
  call: CallContext,
): Promise<RefusedEviction | undefined> {
  // One that is going already need not be asked again.
  if (textAt(pod, "metadata", "deletionTimestamp") !== undefined) return undefined;
  const name = textAt(pod, "metadata", "name") ?? "";
  const namespace = textAt(pod, "metadata", "namespace") ?? "";
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/eviction`;
  const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } };
  try {
    await client.find(target, { method: "POST", path, body }, call);
    return undefined;
  } catch (error) {
    // 429: it may not go now. It stays in the list, and is asked again next time.
    if (!(error instanceof DeviceFailure) || error.status !== 429) throw error;
    const why = error.said ?? "";
    return { pod: nameOfPod(pod), by: /disruption budget/i.test(why) ? "disruption_budget" : "cluster", why };
  }
}

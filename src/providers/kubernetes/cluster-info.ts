import type { CallContext } from "../../capabilities/call.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import { DeviceFailure, isForbidden } from "../../capabilities/device-failure.ts";
import type { Resource } from "../transport/device-json.ts";
import type { KubernetesClient } from "./client.ts";
import { type JoinPlace, joinPlaceOf } from "./join-material.ts";
import { textAt } from "./nodes.ts";

const CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info";

/** Where nodes reach the cluster, and its authority, as it publishes them. */
export async function readClusterInfo(
  client: KubernetesClient,
  target: ClusterTarget,
  call: CallContext,
): Promise<JoinPlace> {
  const kubeconfig = textAt(await readMap(client, target, call), "data", "kubeconfig");
  const info = kubeconfig === undefined ? undefined : joinPlaceOf(kubeconfig);
  if (info !== undefined) return info;
  throw new DeviceFailure(
    "protocol",
    "cluster",
    `cluster ${target.name} does not publish how to join it (cluster-info in kube-public). Was it set up with kubeadm?`,
    { disposition: "fail" },
  );
}

/** kubeadm lets `system:anonymous` read it, and with it nobody else: a user who signs in is then forbidden to. */
async function readMap(
  client: KubernetesClient,
  target: ClusterTarget,
  call: CallContext,
): Promise<Resource | undefined> {
  const asked = { method: "GET", path: CLUSTER_INFO } as const;
  try {
    return await client.find(target, asked, call);
  } catch (error) {
    if (!isForbidden(error)) throw error;
    return client.find(target, { ...asked, anonymous: true }, call).catch(() => {
      throw error;
    });
  }
}

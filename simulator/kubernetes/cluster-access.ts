import type { ClusterAccess } from "../shell/shell-session.ts";
import type { SimulatedClock } from "../simulated-clock.ts";
import { selects } from "./api-call.ts";
import type { Cluster } from "./cluster.ts";
import { evict } from "./eviction.ts";
import { nodeObject } from "./node-object.ts";
import { patchNode } from "./node-routes.ts";
import { fieldOfPod, isDaemon, ownerKindOf, podObject } from "./pods.ts";

/** For those on machines who hold credentials of the cluster. */
export function accessTo(cluster: Cluster, clock: SimulatedClock): ClusterAccess {
  return {
    node(name) {
      const record = cluster.node(name);
      if (record === undefined) return undefined;
      const { unschedulable, info } = record;
      const ready = cluster.silentFor(record) === undefined;
      const object = nodeObject(cluster, record, clock);
      return { name, unschedulable, ready, kubeletVersion: info.kubeletVersion, object };
    },
    setSchedulable(name, schedulable) {
      const record = cluster.node(name);
      if (record !== undefined) cluster.setSchedulable(record, schedulable);
    },
    patchNode: (name, body) =>
      patchNode({ cluster, clock, names: [name], body, contentType: "application/merge-patch+json" }).status < 300,
    pods: (fieldSelector) =>
      cluster
        .pods()
        .filter((pod) => selects(fieldSelector, (key) => fieldOfPod(pod, key)))
        .map((pod) => ({
          namespace: pod.namespace,
          name: pod.name,
          isDaemon: isDaemon(pod),
          isBare: ownerKindOf(pod) === null,
          isMirror: pod.isMirror,
          hasLocalData: pod.hasLocalData,
          isOver: pod.phase !== "Running",
          object: podObject(pod, clock.realNow()),
        })),
    evict({ namespace, name }) {
      const pod = cluster.pods().find((each) => each.namespace === namespace && each.name === name);
      return pod === undefined || evict({ cluster, body: {} }, pod).status === 201;
    },
  };
}

import type { SimulatedClock } from "../simulated-clock.ts";
import type { Cluster } from "./cluster.ts";
import type { NodeRecord } from "./node-record.ts";
import { isoSeconds } from "./pods.ts";

/** How long a node counts as ready after its kubelet was last heard of. Simulated milliseconds. */
const NODE_GRACE_MS = 40_000;

const UNSCHEDULABLE = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" } as const;
const UNREACHABLE = { key: "node.kubernetes.io/unreachable", effect: "NoExecute" } as const;

export const isReady = (cluster: Cluster, record: NodeRecord): boolean =>
  (cluster.silentFor(record) ?? 0) < NODE_GRACE_MS;

/** A node as the API shows it. */
export function nodeObject(cluster: Cluster, record: NodeRecord, clock: SimulatedClock) {
  const content = contentOf(cluster, record, clock);
  const { metadata, ...rest } = content;
  const resourceVersion = String(cluster.versionOf(`node/${record.name}`, JSON.stringify(content)));
  return { apiVersion: "v1", kind: "Node", metadata: { ...metadata, resourceVersion }, ...rest };
}
export type NodeObject = ReturnType<typeof nodeObject>;

function contentOf(cluster: Cluster, record: NodeRecord, clock: SimulatedClock) {
  const ready = isReady(cluster, record);
  const taints = [...record.taints, ...(record.unschedulable ? [UNSCHEDULABLE] : []), ...(ready ? [] : [UNREACHABLE])];
  const machine = cluster.machineOf(record);
  return {
    metadata: {
      name: record.name,
      uid: record.uid,
      creationTimestamp: isoSeconds(record.createdAt),
      labels: {
        "kubernetes.io/hostname": record.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        ...record.labels,
      },
      annotations: record.annotations,
    },
    spec: {
      ...(record.unschedulable ? { unschedulable: true } : {}),
      ...(taints.length === 0 ? {} : { taints }),
    },
    status: {
      capacity: { cpu: "192", memory: "768Gi", pods: "110" },
      allocatable: { cpu: "190", memory: "760Gi", pods: "110" },
      conditions: conditionsOf(cluster, record, clock),
      addresses: record.reported?.addresses ?? [
        { type: "InternalIP", address: machine?.addresses[0] ?? "" },
        { type: "Hostname", address: record.name },
      ],
      daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
      nodeInfo: {
        ...record.info,
        architecture: "amd64",
        operatingSystem: "linux",
        kernelVersion: "5.15.0-generic",
        osImage: "Ubuntu 22.04.4 LTS",
        containerRuntimeVersion: "containerd://1.7.13",
        kubeProxyVersion: record.info.kubeletVersion,
      },
    },
  };
}

/** The heartbeat is shown when it stopped, not each time it beats: leases carry it, and the object stays as it is. */
function conditionsOf(cluster: Cluster, record: NodeRecord, clock: SimulatedClock) {
  const silentFor = cluster.silentFor(record);
  const state = cluster.machineOf(record)?.state;
  const ready = isReady(cluster, record);
  const heardUntil = clock.realTimeOf(state?.kubeletSilentSince ?? 0);
  const since = ready
    ? Math.max(record.createdAt, clock.realTimeOf(state?.runningSince ?? 0))
    : clock.realTimeOf((state?.kubeletSilentSince ?? 0) + NODE_GRACE_MS);
  const times = {
    lastHeartbeatTime: isoSeconds(Math.max(0, silentFor === undefined ? since : heardUntil)),
    lastTransitionTime: isoSeconds(Math.max(0, since)),
  };
  const unknown = { status: "Unknown", reason: "NodeStatusUnknown", message: "Kubelet stopped posting node status." };
  const pressures = (["MemoryPressure", "DiskPressure", "PIDPressure"] as const).map((type) => ({
    type,
    ...times,
    ...(ready ? { status: "False", reason: `KubeletHasNo${type}`, message: `kubelet has no ${type}` } : unknown),
  }));
  return [
    ...pressures,
    {
      type: "Ready",
      ...times,
      ...(ready ? { status: "True", reason: "KubeletReady", message: "kubelet is posting ready status" } : unknown),
    },
  ];
}

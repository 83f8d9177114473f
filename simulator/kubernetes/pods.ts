import { hash } from "node:crypto";
import type { PlacedPod } from "./cluster-objects.ts";
import type { NodeRecord } from "./node-record.ts";

export interface PodRecord extends PlacedPod {
  readonly uid: string;
  readonly createdAt: number;
  /** In simulated time, once it was evicted. */
  readonly goneAt: number | null;
}

const WORKLOADS = 3;
const USUAL = { phase: "Running", isMirror: false, hasLocalData: false, finalizers: [] } as const;

/** What runs on every node: two daemons that a drain leaves alone, and some work that it must move away; and what was put there. */
export function podsOf(node: NodeRecord, placed: readonly PlacedPod[] = []): PodRecord[] {
  const daemons = ["kube-proxy", "cni"].map((owner) => usualPod(node, { namespace: "kube-system", owner, index: 0 }));
  return [...daemons, ...workOf(node), ...placed.map((pod) => record(node, pod, pod.name))];
}

export const workOf = (node: NodeRecord): PodRecord[] =>
  Array.from({ length: WORKLOADS }, (_, index) => usualPod(node, { namespace: "default", owner: "web-7d4f", index }));

export const podKey = ({ namespace, name }: Pick<PodRecord, "namespace" | "name">): string => `${namespace}/${name}`;

/** What starts a pod again, by the name of its owner. */
const KINDS: Readonly<Record<string, string>> = { "kube-proxy": "DaemonSet", cni: "DaemonSet" };
export const ownerKindOf = ({ owner }: Pick<PodRecord, "owner">): string | null =>
  owner === null ? null : (KINDS[owner] ?? "ReplicaSet");
export const isDaemon = (pod: Pick<PodRecord, "owner">): boolean => ownerKindOf(pod) === "DaemonSet";

function usualPod(
  node: NodeRecord,
  { namespace, owner, index }: { readonly namespace: string; readonly owner: string; readonly index: number },
): PodRecord {
  const seed = `${owner}/${index}`;
  const name = `${owner}-${digestOf(node, seed).slice(0, 5)}`;
  return record(node, { ...USUAL, namespace, name, node: node.name, owner, labels: { app: owner } }, seed);
}

const digestOf = (node: NodeRecord, seed: string): string => hash("sha256", `${node.uid}/${node.registration}/${seed}`);

function record(node: NodeRecord, pod: PlacedPod, seed: string): PodRecord {
  const digest = digestOf(node, seed);
  return {
    ...pod,
    uid: `${digest.slice(0, 8)}-${digest.slice(8, 12)}-4${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`,
    createdAt: node.createdAt,
    goneAt: node.evicted[podKey(pod)] ?? null,
  };
}

/** A pod as the API shows it. */
export const podObject = (pod: PodRecord, realNow: number) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name: pod.name,
    namespace: pod.namespace,
    uid: pod.uid,
    resourceVersion: pod.goneAt === null ? "1" : "2",
    creationTimestamp: isoSeconds(pod.createdAt),
    ...(pod.goneAt === null ? {} : { deletionTimestamp: isoSeconds(realNow), deletionGracePeriodSeconds: 5 }),
    labels: pod.labels,
    ...(pod.isMirror ? { annotations: { "kubernetes.io/config.mirror": pod.uid } } : {}),
    ...(pod.finalizers.length === 0 ? {} : { finalizers: pod.finalizers }),
    ...ownersOf(pod),
  },
  spec: {
    nodeName: pod.node,
    containers: [{ name: "main", image: "registry.invalid/main:1" }],
    ...(pod.hasLocalData ? { volumes: [{ name: "scratch", emptyDir: {} }] } : {}),
  },
  status: { phase: pod.phase, conditions: [{ type: "Ready", status: pod.phase === "Running" ? "True" : "False" }] },
});

function ownersOf(pod: PodRecord): object {
  if (pod.isMirror)
    return { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: pod.node, uid: pod.uid, controller: true }] };
  const kind = ownerKindOf(pod);
  if (kind === null) return {};
  return { ownerReferences: [{ apiVersion: "apps/v1", kind, name: pod.owner, uid: pod.uid, controller: true }] };
}

/** By what pods can be selected. */
export const fieldOfPod = (pod: PodRecord, key: string): string | undefined =>
  ({
    "spec.nodeName": pod.node,
    "metadata.name": pod.name,
    "metadata.namespace": pod.namespace,
    "status.phase": pod.phase,
  })[key];
export const POD_FIELDS: readonly string[] = [
  "metadata.name",
  "metadata.namespace",
  "spec.nodeName",
  "spec.restartPolicy",
  "spec.schedulerName",
  "spec.serviceAccountName",
  "status.nominatedNodeName",
  "status.phase",
  "status.podIP",
];

/** Kubernetes writes times without fractions of a second. */
export const isoSeconds = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;

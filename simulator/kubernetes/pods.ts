import { hash } from "node:crypto";
import type { NodeRecord } from "./node-record.ts";

export interface PodRecord {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly node: string;
  readonly owner: { readonly kind: "DaemonSet" | "ReplicaSet"; readonly name: string };
  readonly createdAt: number;
  /** In simulated time, once it was evicted. */
  readonly goneAt: number | null;
}

const WORKLOADS = 3;

/** What runs on every node: two daemons that a drain leaves alone, and some work that it must move away. */
export function podsOf(node: NodeRecord): PodRecord[] {
  const daemons = ["kube-proxy", "cni"].map((owner) =>
    podOf(node, { namespace: "kube-system", owner: { kind: "DaemonSet", name: owner }, index: 0 }),
  );
  return [...daemons, ...workOf(node)];
}

export const workOf = (node: NodeRecord): PodRecord[] =>
  Array.from({ length: WORKLOADS }, (_, index) =>
    podOf(node, { namespace: "default", owner: { kind: "ReplicaSet", name: "web-7d4f" }, index }),
  );

export const podKey = ({ namespace, name }: Pick<PodRecord, "namespace" | "name">): string => `${namespace}/${name}`;

function podOf(
  node: NodeRecord,
  { namespace, owner, index }: { namespace: string; owner: PodRecord["owner"]; index: number },
): PodRecord {
  const digest = hash("sha256", `${node.uid}/${node.registration}/${owner.name}/${index}`);
  const name = `${owner.name}-${digest.slice(0, 5)}`;
  return {
    namespace,
    name,
    uid: `${digest.slice(0, 8)}-${digest.slice(8, 12)}-4${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`,
    node: node.name,
    owner,
    createdAt: node.createdAt,
    goneAt: node.evicted[`${namespace}/${name}`] ?? null,
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
    labels: { app: pod.owner.name },
    ownerReferences: [
      { apiVersion: "apps/v1", kind: pod.owner.kind, name: pod.owner.name, uid: pod.uid, controller: true },
    ],
  },
  spec: { nodeName: pod.node, containers: [{ name: "main", image: "registry.invalid/main:1" }] },
  status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
});

/** By what pods can be selected. */
export const fieldOfPod = (pod: PodRecord, key: string): string | undefined =>
  ({
    "spec.nodeName": pod.node,
    "metadata.name": pod.name,
    "metadata.namespace": pod.namespace,
    "status.phase": "Running",
  })[key];

/** Kubernetes writes times without fractions of a second. */
export const isoSeconds = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;

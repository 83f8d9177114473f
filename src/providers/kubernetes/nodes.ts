import type { ClusterNode } from "../../capabilities/cluster.ts";
import type { NodeMarks } from "../../capabilities/clusters/node-identity.ts";
import type { ListedNode } from "../../capabilities/node-list.ts";
import { isResource, type Resource, valueAt } from "../transport/device-json.ts";

/** Whole, however long it is: configurations are handed on in such texts. */
export const textAt = (value: unknown, ...path: readonly string[]): string | undefined => {
  const found = valueAt(value, ...path);
  return typeof found === "string" && found !== "" ? found : undefined;
};
const listAt = (value: unknown, ...path: readonly string[]): readonly Resource[] => {
  const found = valueAt(value, ...path);
  return Array.isArray(found) ? found.filter(isResource) : [];
};
const flagAt = (value: unknown, ...path: readonly string[]): boolean => valueAt(value, ...path) === true;

/** The mark that tells our cordon from somebody else's. */
export const CORDONED_BY_US = "millwright.io/cordoned";
/** Beside it where a maintenance cordoned the node, which a run's scripts do not end: uncordon_node.sh goes by it. */
export const CORDONED_FOR_MAINTENANCE = "millwright.io/maintenance";

/** Where distributions and vendors note the serial number of the machine behind a node. */
const SERIAL_LABELS = ["millwright.io/serial", "node.kubernetes.io/serial"] as const;

const serialOf = (node: Resource): string | undefined =>
  SERIAL_LABELS.flatMap((label) => textAt(node, "metadata", "labels", label) ?? [])[0];

/** What it calls itself is no address. */
const addressesOf = (node: Resource): readonly string[] =>
  listAt(node, "status", "addresses").flatMap((address) =>
    textAt(address, "type") === "Hostname" ? [] : (textAt(address, "address") ?? []),
  );

const seenOf = (node: Resource) => {
  const ready = listAt(node, "status", "conditions").find((condition) => textAt(condition, "type") === "Ready");
  const isReady = textAt(ready, "status") === "True";
  const { name, systemUuid } = marksOf(node);
  return {
    name,
    ready: isReady,
    reason: isReady ? "" : (textAt(ready, "message") ?? textAt(ready, "reason") ?? "it has not reported yet"),
    unschedulable: flagAt(node, "spec", "unschedulable"),
    systemUuid,
    bootId: textAt(node, "status", "nodeInfo", "bootID") ?? null,
  };
};

/** By what it is told to be a machine. */
export const marksOf = (node: Resource): NodeMarks => ({
  name: textAt(node, "metadata", "name") ?? "",
  systemUuid: textAt(node, "status", "nodeInfo", "systemUUID")?.toLowerCase() ?? null,
  serial: serialOf(node) ?? null,
  addresses: addressesOf(node),
});

export const describeNode = (node: Resource): Omit<ClusterNode, "matchedBy"> => ({
  ...seenOf(node),
  uid: textAt(node, "metadata", "uid") ?? "",
  cordonedByUs: textAt(node, "metadata", "annotations", CORDONED_BY_US) === "true",
  kubeletVersion: textAt(node, "status", "nodeInfo", "kubeletVersion") ?? null,
});

export const describeListed = (node: Resource): ListedNode => ({ ...seenOf(node), ...marksOf(node) });

/** It was told to end. */
export const isGoing = (pod: Resource): boolean => textAt(pod, "metadata", "deletionTimestamp") !== undefined;

export const nameOfPod = (pod: Resource): string =>
  `${textAt(pod, "metadata", "namespace") ?? ""}/${textAt(pod, "metadata", "name") ?? ""}`;

/** Pods that a drain moves away: not those of daemon sets, nor static ones, nor those that are over. */
export function mustLeave(pod: Resource): boolean {
  if (["Succeeded", "Failed"].includes(textAt(pod, "status", "phase") ?? "")) return false;
  if (textAt(pod, "metadata", "annotations", "kubernetes.io/config.mirror") !== undefined) return false;
  return !listAt(pod, "metadata", "ownerReferences").some((owner) => textAt(owner, "kind") === "DaemonSet");
}

/** Nothing starts it again elsewhere. */
export const isBare = (pod: Resource): boolean =>
  !listAt(pod, "metadata", "ownerReferences").some((owner) => flagAt(owner, "controller"));

/** What it wrote there goes with it. */
export const hasLocalData = (pod: Resource): boolean =>
  listAt(pod, "spec", "volumes").some((volume) => isResource(volume.emptyDir));

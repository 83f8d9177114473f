import type { ClusterNode, NodeIdentity } from "../../capabilities/cluster.ts";
import { isMembers, type Members } from "./client.ts";

const at = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (here, member) => (isMembers(here) && Object.hasOwn(here, member) ? here[member] : undefined),
    value,
  );
export const textAt = (value: unknown, ...path: readonly string[]): string | undefined => {
  const found = at(value, ...path);
  return typeof found === "string" && found !== "" ? found : undefined;
};
export const listAt = (value: unknown, ...path: readonly string[]): readonly Members[] => {
  const found = at(value, ...path);
  return Array.isArray(found) ? found.filter(isMembers) : [];
};
export const flagAt = (value: unknown, ...path: readonly string[]): boolean => at(value, ...path) === true;

/** Where distributions and vendors note the serial number of the machine behind a node. */
const SERIAL_LABELS = ["millwright.io/serial", "node.kubernetes.io/serial"] as const;

/**
 * By which of its marks the node is this machine, the strongest first. What contradicts a stronger mark is never matched by a
 * weaker one: an address may have been given to another machine since.
 */
export function matchOf(node: Members, identity: NodeIdentity): ClusterNode["matchedBy"] | undefined {
  const uuid = textAt(node, "status", "nodeInfo", "systemUUID")?.toLowerCase();
  const wanted = identity.systemUuid?.toLowerCase();
  if (uuid !== undefined && wanted !== undefined) return isSameUuid(uuid, wanted) ? "system_uuid" : undefined;
  const serial = SERIAL_LABELS.flatMap((label) => textAt(node, "metadata", "labels", label) ?? [])[0];
  if (serial !== undefined && identity.serial !== null)
    return serial.toLowerCase() === identity.serial.toLowerCase() ? "serial" : undefined;
  const addresses = listAt(node, "status", "addresses").flatMap((address) =>
    textAt(address, "type") === "Hostname" ? [] : (textAt(address, "address") ?? []),
  );
  return addresses.some((address) => identity.addresses.includes(address)) ? "address" : undefined;
}

/** SMBIOS before 2.6 left the byte order of the first three fields open, and firmware took both. */
export function isSameUuid(one: string, other: string): boolean {
  return one === other || swapped(one) === other;
}

function swapped(uuid: string): string {
  const [first = "", second = "", third = "", ...rest] = uuid.split("-");
  const turned = (field: string) => (field.match(/../g) ?? []).toReversed().join("");
  return [turned(first), turned(second), turned(third), ...rest].join("-");
}

export function describeNode(node: Members, matchedBy: ClusterNode["matchedBy"]): ClusterNode {
  const ready = listAt(node, "status", "conditions").find((condition) => textAt(condition, "type") === "Ready");
  const isReady = textAt(ready, "status") === "True";
  return {
    name: textAt(node, "metadata", "name") ?? "",
    uid: textAt(node, "metadata", "uid") ?? "",
    ready: isReady,
    reason: isReady ? "" : (textAt(ready, "message") ?? textAt(ready, "reason") ?? "it has not reported yet"),
    unschedulable: flagAt(node, "spec", "unschedulable"),
    systemUuid: textAt(node, "status", "nodeInfo", "systemUUID")?.toLowerCase() ?? null,
    bootId: textAt(node, "status", "nodeInfo", "bootID") ?? null,
    kubeletVersion: textAt(node, "status", "nodeInfo", "kubeletVersion") ?? null,
    matchedBy,
  };
}

/** Pods that a drain moves away: not those of daemon sets, nor static ones, nor those that are over. */
export function mustLeave(pod: Members): boolean {
  if (["Succeeded", "Failed"].includes(textAt(pod, "status", "phase") ?? "")) return false;
  if (textAt(pod, "metadata", "annotations", "kubernetes.io/config.mirror") !== undefined) return false;
  return !listAt(pod, "metadata", "ownerReferences").some((owner) => textAt(owner, "kind") === "DaemonSet");
}

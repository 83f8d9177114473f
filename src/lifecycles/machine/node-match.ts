import type { NodeIdentity } from "../../capabilities/cluster.ts";
import { matchNodes, type NodeMatch } from "../../capabilities/clusters/node-identity.ts";
import type { ListedNode } from "../../capabilities/node-list.ts";
import { swappedUuid } from "../../capabilities/system-uuid.ts";

/** Nodes by what tells them to be a machine. A name tells nothing. */
export interface NodeIndex {
  readonly byUuid: ReadonlyMap<string, readonly ListedNode[]>;
  readonly bySerial: ReadonlyMap<string, readonly ListedNode[]>;
  readonly byAddress: ReadonlyMap<string, readonly ListedNode[]>;
}

export function indexNodes(nodes: readonly ListedNode[]): NodeIndex {
  const byUuid = new Map<string, ListedNode[]>();
  const bySerial = new Map<string, ListedNode[]>();
  const byAddress = new Map<string, ListedNode[]>();
  for (const node of nodes) {
    if (node.systemUuid !== null) add(byUuid, node.systemUuid.toLowerCase(), node);
    if (node.serial !== null) add(bySerial, node.serial.toLowerCase(), node);
    for (const address of new Set(node.addresses)) add(byAddress, address, node);
  }
  return { byUuid, bySerial, byAddress };
}

function add(map: Map<string, ListedNode[]>, key: string, node: ListedNode): void {
  const known = map.get(key);
  if (known) known.push(node);
  else map.set(key, [node]);
}

/** As `matchNodes` of all of them; only those that have a mark in common with the machine are compared. */
export function matchNode(index: NodeIndex, identity: NodeIdentity): NodeMatch<ListedNode> {
  const { systemUuid, serial, addresses } = identity;
  const uuid = systemUuid?.toLowerCase();
  return matchNodes(
    new Set([
      ...(uuid === undefined ? [] : (index.byUuid.get(uuid) ?? [])),
      ...(uuid === undefined ? [] : (index.byUuid.get(swappedUuid(uuid)) ?? [])),
      ...(serial === null ? [] : (index.bySerial.get(serial.toLowerCase()) ?? [])),
      ...addresses.flatMap((address) => index.byAddress.get(address) ?? []),
    ]),
    identity,
  );
}

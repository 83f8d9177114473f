import type { NodeIdentity } from "../../capabilities/cluster.ts";
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

/**
 * The node that is this machine, by the strongest mark that both have. What contradicts a stronger mark is never matched by a
 * weaker one: an address may have been given to another machine since. Of several, as an earlier system may leave behind, the one
 * that is Ready.
 */
export function matchNode(index: NodeIndex, { systemUuid, serial, addresses }: NodeIdentity): ListedNode | null {
  const uuid = systemUuid?.toLowerCase();
  if (uuid !== undefined) {
    const found = [...(index.byUuid.get(uuid) ?? []), ...otherSpelling(index, uuid)];
    if (found.length > 0) return best(found);
  }
  const isNoOther = (node: ListedNode) => uuid === undefined || node.systemUuid === null;
  if (serial !== null) {
    const found = (index.bySerial.get(serial.toLowerCase()) ?? []).filter(isNoOther);
    if (found.length > 0) return best(found);
  }
  const found = addresses
    .flatMap((address) => index.byAddress.get(address) ?? [])
    .filter((node) => isNoOther(node) && (serial === null || node.serial === null));
  return best(found);
}

function otherSpelling({ byUuid }: NodeIndex, uuid: string): readonly ListedNode[] {
  const swapped = swappedUuid(uuid);
  return swapped === uuid ? [] : (byUuid.get(swapped) ?? []);
}

const best = (nodes: readonly ListedNode[]): ListedNode | null => nodes.find(({ ready }) => ready) ?? nodes[0] ?? null;

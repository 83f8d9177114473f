import type { NodeIdentity } from "../cluster.ts";
import { isSameUuid } from "../system-uuid.ts";

/** By what a node is told to be a machine, the strongest first. A name alone proves nothing. */
const NODE_MARKS = ["system_uuid", "serial", "address"] as const;
export type NodeMark = (typeof NODE_MARKS)[number];

/** What a node tells of the machine that it is. */
export interface NodeMarks {
  readonly name: string;
  readonly systemUuid: string | null;
  readonly serial: string | null;
  readonly addresses: readonly string[];
}

/**
 * By which mark the node is the machine. What contradicts a stronger mark is never matched by a weaker one, since an address may
 * have been given to another machine; but it is no stranger either: one of the two marks is wrong, and nobody can tell which.
 */
export function compareNode(
  node: NodeMarks,
  { systemUuid, serial, addresses }: NodeIdentity,
): NodeMark | "contradicts" | undefined {
  const hasAddress = node.addresses.some((address) => addresses.includes(address));
  const isSerial = node.serial !== null && serial !== null ? isSameText(node.serial, serial) : undefined;
  if (node.systemUuid !== null && systemUuid !== null) {
    if (isSameUuid(node.systemUuid.toLowerCase(), systemUuid.toLowerCase())) return "system_uuid";
    return isSerial === true || hasAddress ? "contradicts" : undefined;
  }
  if (isSerial !== undefined) return isSerial ? "serial" : hasAddress ? "contradicts" : undefined;
  return hasAddress ? "address" : undefined;
}

const isSameText = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

export type NodeMatch<N extends NodeMarks> =
  | { readonly is: "one"; readonly node: N; readonly by: NodeMark }
  /** More than one, and nothing tells which: an earlier system left one behind, or two machines have one UUID. */
  | { readonly is: "several"; readonly nodes: readonly N[]; readonly by: NodeMark }
  /** None; and those of which one mark says that they are this machine, and a stronger one that they are not. */
  | { readonly is: "none"; readonly contradicting: readonly N[] };

/** The one node that is the machine, by the strongest mark that any of them has. */
export function matchNodes<N extends NodeMarks>(nodes: Iterable<N>, identity: NodeIdentity): NodeMatch<N> {
  const compared = [...nodes].map((node) => ({ node, by: compareNode(node, identity) }));
  const of = (mark: ReturnType<typeof compareNode>) => compared.filter(({ by }) => by === mark).map(({ node }) => node);
  for (const by of NODE_MARKS) {
    const found = of(by);
    if (found.length === 0) continue;
    // Of two with one UUID the address may tell: the other was left at another one, or is another machine.
    const here = found.filter((node) => node.addresses.some((address) => identity.addresses.includes(address)));
    const [node] = found.length === 1 ? found : here;
    return node !== undefined && (found.length === 1 || here.length === 1)
      ? { is: "one", node, by }
      : { is: "several", nodes: found, by };
  }
  return { is: "none", contradicting: of("contradicts") };
}

const MARK_NAMES: Readonly<Record<NodeMark, string>> = {
  system_uuid: "system UUID",
  serial: "serial",
  address: "address",
};

/** The same words wherever it is found out. */
export const describeSeveral = (cluster: string, nodes: readonly NodeMarks[], by: NodeMark): string =>
  `cluster ${cluster} has ${nodes.length} nodes that are this machine by their ${MARK_NAMES[by]}: ${nodes
    .map(({ name }) => name)
    .toSorted()
    .join(", ")}; delete the stale one (kubectl delete node <name>)`;

export function describeContradiction(
  cluster: string,
  node: NodeMarks,
  { systemUuid, serial, addresses }: NodeIdentity,
): string {
  const isOther = node.systemUuid !== null && systemUuid !== null;
  const [mark, shown, expected] = isOther
    ? ["system UUID", node.systemUuid, systemUuid]
    : ["serial", node.serial, serial];
  const address = node.addresses.find((each) => addresses.includes(each));
  const same = address === undefined ? "the serial" : `the address ${address}`;
  return `node ${node.name} of ${cluster} has ${same} of this machine, but ${mark} ${shown} and not ${expected}: find out which machine it is`;
}

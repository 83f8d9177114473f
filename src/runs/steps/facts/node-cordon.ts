import type { ClusterNode } from "../../../capabilities/cluster.ts";
import type { CordonedNode, Machine } from "../../../lifecycles/machine/machine.ts";

interface CordonSeen {
  /** For people, after what was proven; empty where the node takes work. */
  readonly note: string;
  /** What the machine has to know of it. */
  readonly facts: { readonly cordoned?: CordonedNode };
}

/**
 * A node keeps its cordon when its machine is installed anew and joins under the same name. One that bears our mark was left by a
 * run that was cut short, whoever began it: the machine is told, and gives it back as soon as it is in use. Somebody else's stays,
 * and is no reason to fail: the node is there and Ready, and who cordoned it knows why.
 */
export function cordonOf(node: ClusterNode, cluster: string, { facts }: Pick<Machine, "facts">): CordonSeen {
  if (!node.unschedulable) return { note: "", facts: {} };
  if (!node.cordonedByUs)
    return {
      note: `; it is cordoned, though not by Millwright, and stays so (kubectl uncordon ${node.name})`,
      facts: {},
    };
  const isKnown = facts.cordoned?.cluster === cluster;
  return {
    note: "; it is still cordoned by Millwright, and uncordoned once the machine is in use",
    facts: isKnown ? {} : { cordoned: { cluster, node: "" } },
  };
}

import type { CallContext } from "../../capabilities/call.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import type { ListedNode, NodeList } from "../../capabilities/node-list.ts";
import type { Resource } from "../device-json.ts";
import type { KubernetesClient } from "./client.ts";
import { describeListed, listAt, mustLeave, nameOfPod, textAt } from "./nodes.ts";

const PAGE = "500";
/** Ten thousand nodes; a cluster that never ends its list must not keep us for ever. */
const MOST_PAGES = 20;

export function createNodeList(client: KubernetesClient): NodeList {
  return {
    async listNodes(target, call) {
      const nodes: ListedNode[] = [];
      // A node is kilobytes, of which a few words matter: what is kept is those, page by page.
      await forEachNode(client, target, call, (node) => nodes.push(describeListed(node)));
      return nodes;
    },

    async listWorkloads(target, nodeName, call) {
      return (await listLeaving(client, target, nodeName, call)).map(nameOfPod);
    },
  };
}

export async function forEachNode(
  client: KubernetesClient,
  target: ClusterTarget,
  call: CallContext,
  see: (node: Resource) => void,
): Promise<void> {
  let token: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const query = { limit: PAGE, ...(token === undefined ? {} : { continue: token }) };
    const list = await client.send(target, { method: "GET", path: "/api/v1/nodes", query }, call);
    for (const node of listAt(list, "items")) see(node);
    token = textAt(list, "metadata", "continue");
    if (token === undefined) return;
  }
}

/** What a drain moves away from the node. */
export async function listLeaving(
  client: KubernetesClient,
  target: ClusterTarget,
  nodeName: string,
  call: CallContext,
): Promise<readonly Resource[]> {
  const query = { fieldSelector: `spec.nodeName=${nodeName}`, limit: PAGE };
  const pods = listAt(await client.send(target, { method: "GET", path: "/api/v1/pods", query }, call), "items");
  return pods.filter(mustLeave);
}

import type { CallContext } from "../../capabilities/call.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { ListedNode, NodeList } from "../../capabilities/node-list.ts";
import type { Resource } from "../transport/device-json.ts";
import type { KubernetesClient } from "./client.ts";
import { describeListed, isGoing, mustLeave, nameOfPod, textAt } from "./nodes.ts";

const PAGE = "500";
/** Fifty thousand; a cluster that never ends its list must not keep us for ever. */
const MOST_PAGES = 100;

/** What means something in a field selector, and is a name's own where a backslash is before it. */
const SELECTOR_SYNTAX = /[\\,=]/g;

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

    async listGoing(target, nodeName, call) {
      return (await listLeaving(client, target, nodeName, call)).filter(isGoing).map(nameOfPod);
    },
  };
}

interface Listed {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
}

/** To the end, or not at all: who is missing from half a list is not gone. */
async function forEachListed(
  client: KubernetesClient,
  target: ClusterTarget,
  { path, query: which = {} }: Listed,
  call: CallContext,
  see: (item: Resource) => void,
): Promise<void> {
  let token: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const query = { ...which, limit: PAGE, ...(token === undefined ? {} : { continue: token }) };
    const list = await client.send(target, { method: "GET", path, query }, call);
    for (const item of itemsOf(list, `cluster ${target.name}: GET ${path}`)) see(item);
    token = textAt(list, "metadata", "continue");
    if (token === undefined) return;
  }
  throw new DeviceFailure("protocol", "cluster", `cluster ${target.name}: GET ${path}: the list does not end`);
}

/** Each has a name. What is no list, or has something else in it, is no answer: who is missing from it is not gone. */
function itemsOf(list: Resource, what: string): readonly Resource[] {
  // Some servers write an empty list so.
  const items = list.items === null ? [] : list.items;
  const isNamed = (item: unknown): item is Resource => textAt(item, "metadata", "name") !== undefined;
  if (Array.isArray(items) && items.every(isNamed)) return items;
  throw new DeviceFailure("protocol", "cluster", `${what} was answered with something that is not a list of them`);
}

export const forEachNode = (
  client: KubernetesClient,
  target: ClusterTarget,
  call: CallContext,
  see: (node: Resource) => void,
): Promise<void> => forEachListed(client, target, { path: "/api/v1/nodes" }, call, see);

/** What a drain moves away from the node. Pods that are over stay listed by the thousand, so that one page may tell of nothing else. */
export async function listLeaving(
  client: KubernetesClient,
  target: ClusterTarget,
  nodeName: string,
  call: CallContext,
): Promise<readonly Resource[]> {
  const leaving: Resource[] = [];
  const pods = {
    path: "/api/v1/pods",
    query: { fieldSelector: `spec.nodeName=${nodeName.replace(SELECTOR_SYNTAX, "\\$&")}` },
  };
  await forEachListed(client, target, pods, call, (pod) => {
    if (mustLeave(pod)) leaving.push(pod);
  });
  return leaving;
}

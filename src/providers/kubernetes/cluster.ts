import type { CallContext } from "../../capabilities/call.ts";
import type { Cluster, ClusterNode, NodeIdentity } from "../../capabilities/cluster.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import { compareNode, describeSeveral, matchNodes, type NodeMarks } from "../../capabilities/clusters/node-identity.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { type Clock, systemClock } from "../../kernel/time/clock.ts";
import type { KubernetesClient } from "./client.ts";
import { readClusterInfo } from "./cluster-info.ts";
import { drainNode } from "./drain.ts";
import { bootstrapSecret, caCertHash, newBootstrapToken, secretOfToken } from "./join-material.ts";
import { forEachNode } from "./node-list.ts";
import { CORDONED_BY_US, CORDONED_FOR_MAINTENANCE, describeNode, marksOf } from "./nodes.ts";

const SECRETS = "/api/v1/namespaces/kube-system/secrets";

export function createCluster(client: KubernetesClient, clock: Clock = systemClock): Cluster {
  const nodePath = (name: string) => `/api/v1/nodes/${encodeURIComponent(name)}`;
  const revoke = async (target: ClusterTarget, tokenId: string, call: CallContext) =>
    void (await client.find(target, { method: "DELETE", path: `${SECRETS}/${secretOfToken(tokenId)}` }, call));

  return {
    async mintJoin(target, { id, lifetime }, call) {
      const info = await readClusterInfo(client, target, call);
      const token = newBootstrapToken(id);
      const expiresAt = new Date(clock.now().getTime() + lifetime);
      const asked = { method: "POST", path: SECRETS, body: bootstrapSecret(token, expiresAt) } as const;
      try {
        await client.send(target, asked, call);
      } catch (error) {
        // Left by a call of which nobody heard the answer: what is secret about it is known to nobody.
        if (!(error instanceof DeviceFailure) || error.status !== 409) throw error;
        await revoke(target, id, call);
        await client.send(target, asked, call);
      }
      return {
        endpoint: info.endpoint,
        token: `${token.id}.${token.secret}`,
        caCertHash: caCertHash(info.ca),
        expiresAt,
      };
    },

    revokeJoin: revoke,

    findNode: (target, identity, call) => findNode(client, target, identity, call),

    async setSchedulable(target, nodeName, schedulable, call, by = "maintenance") {
      const mark = schedulable ? null : "true";
      const annotations = {
        [CORDONED_BY_US]: mark,
        [CORDONED_FOR_MAINTENANCE]: by === "maintenance" ? mark : null,
      };
      const body = { metadata: { annotations }, spec: { unschedulable: schedulable ? null : true } };
      await client.send(target, { method: "PATCH", path: nodePath(nodeName), body }, call);
    },

    drain: (target, nodeName, call, scope) => drainNode(client, target, { nodeName, scope }, call),
  };
}

/** The one node that is this machine. Two that both claim to be are an answer nobody can act on. */
async function findNode(
  client: KubernetesClient,
  target: ClusterTarget,
  identity: NodeIdentity,
  call: CallContext,
): Promise<ClusterNode | undefined> {
  const found: (NodeMarks & { readonly described: Omit<ClusterNode, "matchedBy"> })[] = [];
  await forEachNode(client, target, call, (node) => {
    const marks = marksOf(node);
    // A node is kilobytes; only those that have anything to do with the machine are kept.
    if (compareNode(marks, identity) !== undefined) found.push({ ...marks, described: describeNode(node) });
  });
  const match = matchNodes(found, identity);
  if (match.is === "one") return { ...match.node.described, matchedBy: match.by };
  if (match.is === "none") return undefined;
  throw new DeviceFailure("protocol", "cluster", describeSeveral(target.name, match.nodes, match.by), {
    disposition: "fail",
  });
}

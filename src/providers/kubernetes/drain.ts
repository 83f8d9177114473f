import type { CallContext } from "../../capabilities/call.ts";
import type { DrainProgress, DrainScope, RefusedEviction } from "../../capabilities/cluster.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import { DeviceFailure, isUnreachable } from "../../capabilities/device-failure.ts";
import type { Resource } from "../transport/device-json.ts";
import type { KubernetesClient } from "./client.ts";
import { listLeaving } from "./node-list.ts";
import { hasLocalData, isBare, isGoing, nameOfPod, textAt } from "./nodes.ts";

/** A node has at most a few hundred pods; an API server limits what it works on at a time. */
const AT_ONCE = 10;

/** Asks every pod of the node to go. What keeps one of them keeps no other. */
export async function drainNode(
  client: KubernetesClient,
  target: ClusterTarget,
  { nodeName, scope }: { readonly nodeName: string; readonly scope: DrainScope },
  call: CallContext,
): Promise<DrainProgress> {
  const leaving = await listLeaving(client, target, nodeName, call);
  const spared = leaving.flatMap((pod) => spare(pod, scope) ?? []);
  const isSpared = new Set(spared.map(({ pod }) => pod));
  // One that is going already need not be asked again.
  const asked = leaving.filter((pod) => !isSpared.has(nameOfPod(pod)) && !isGoing(pod));
  const answers = await askAll(asked, (pod) => evict(client, target, pod, call));
  const refused = answers.filter((answer) => answer !== undefined);
  return { remaining: leaving.map(nameOfPod), refused: [...spared, ...refused] };
}

/** Why the pod is not even asked to go. */
function spare(pod: Resource, scope: DrainScope): RefusedEviction | undefined {
  if (isGoing(pod)) return undefined;
  const named = nameOfPod(pod);
  if (!scope.barePods && isBare(pod)) return { pod: named, by: "bare", why: "" };
  if (!scope.localData && hasLocalData(pod)) return { pod: named, by: "local_data", why: "" };
  return undefined;
}

/** A few at a time, all of them, in their order. What one of them throws is thrown once no request is on its way any more. */
async function askAll<T, R>(items: readonly T[], ask: (item: T) => Promise<R>): Promise<R[]> {
  const results: PromiseSettledResult<R>[] = [];
  for (let from = 0; from < items.length; from += AT_ONCE)
    results.push(...(await Promise.allSettled(items.slice(from, from + AT_ONCE).map(ask))));
  return results.map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });
}

/** Why the pod may not go now; undefined when it goes. */
async function evict(
  client: KubernetesClient,
  target: ClusterTarget,
  pod: Resource,
  call: CallContext,
): Promise<RefusedEviction | undefined> {
  const name = textAt(pod, "metadata", "name") ?? "";
  const namespace = textAt(pod, "metadata", "namespace") ?? "";
  const uid = textAt(pod, "metadata", "uid");
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/eviction`;
  const body = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { name, namespace },
    // A stateful set starts another pod under the same name elsewhere, which must not be evicted for this one.
    ...(uid !== undefined && { deleteOptions: { preconditions: { uid } } }),
  };
  try {
    await client.find(target, { method: "POST", path, body }, call);
    return undefined;
  } catch (error) {
    if (!isOfOnePod(error)) throw error;
    const why = error.said || error.message;
    const isBudget = error.status === 429 && /disruption budget/i.test(why);
    return { pod: nameOfPod(pod), by: isBudget ? "disruption_budget" : "cluster", why };
  }
}

/**
 * Two budgets over one pod (500), a namespace that is being deleted (403), another pod of that name (409), a webhook that refuses:
 * all of that is said of one pod. That nobody answers, or that we are not let in, is said of the cluster.
 */
const isOfOnePod = (error: unknown): error is DeviceFailure =>
  error instanceof DeviceFailure && error.status !== undefined && error.status !== 401 && !isUnreachable(error);

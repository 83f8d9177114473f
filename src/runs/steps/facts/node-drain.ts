import type { ClusterNode, DrainProgress } from "../../../capabilities/cluster.ts";
import type { ClusterTarget } from "../../../capabilities/cluster-target.ts";
import { StepFailure } from "../../../kernel/errors.ts";
import { seconds } from "../../../kernel/time/duration.ts";
import { nodeIdentityOf } from "../../../lifecycles/machine/handlers.ts";
import { namedPods, podsRemain } from "../../../lifecycles/machine/observation.ts";
import type { Acted, ActingContext, ProbeAnswer, StepContext } from "../../model/step.ts";
import { SHIPPED_DRAIN_NODE } from "../scripts/runbooks.ts";
import { clusterOnRecord } from "./drain-answer.ts";

/**
 * Who empties the machine's node, for a step that names the shipped drain_node.sh. A kubelet may evict the pods of its node, and may
 * not read the daemon sets that `kubectl drain` asks about first: with the kubelet's own credentials the script fails on every cluster
 * with daemons. So the cluster is asked with the kubeconfig that is on record, as for a maintenance. A cluster that is not on record,
 * and a plan that names a node or a kubeconfig, leave it to the script.
 */
interface Payload {
  readonly args: Readonly<Record<string, string>>;
}
type Used = "cluster" | "nodes";
type Context = StepContext<Payload, "exec", Used>;
type Acting = ActingContext<Payload, unknown, "exec", Used>;

/** What `kubectl drain` is given by the script where the plan says nothing. */
const USUAL_TIMEOUT_SECONDS = 300;

export async function isEmptiedByCluster(context: Context, digest: string): Promise<boolean> {
  const { node, kubeconfig } = context.payload.args;
  if (digest !== SHIPPED_DRAIN_NODE || node !== undefined || kubeconfig !== undefined) return false;
  return (await findNode(context)) !== undefined;
}

export async function beginDrain(context: Acting): Promise<Acted | undefined> {
  const found = await findNode(context);
  if (found === undefined) return undefined;
  const { cluster, node, at } = found;
  const { call, log } = context;
  if (!node.unschedulable) {
    await cluster.setSchedulable(at, node.name, false, call, "run");
    log(`[drain] node ${node.name} of ${at.name} cordoned\n`);
  }
  return { receipt: { said: await evictAll(context, found) } };
}

export async function probeDrain(context: Acting): Promise<ProbeAnswer> {
  const found = await findNode(context);
  if (found === undefined) return { state: "done", message: "the node is gone from its cluster: nothing to drain" };
  const { nodes, node, at } = found;
  const where = `node ${node.name} of ${at.name}`;
  const { call, actingAt, receipt, payload, clock } = context;
  if (!node.unschedulable) return { state: "not_done", message: `${where} is not cordoned` };
  const remaining = await nodes.listWorkloads(at, node.name, call);
  if (remaining.length === 0)
    return { state: "done", message: `${where} is drained: nothing is left on it but daemons and static pods` };
  const message = `${where}: ${typeof receipt?.said === "string" ? receipt.said : podsRemain(remaining)}`;
  if (actingAt == null) return { state: "not_done", message };
  const most = Number(payload.args.timeout ?? USUAL_TIMEOUT_SECONDS);
  if (most > 0 && clock.now().getTime() >= actingAt.getTime() + seconds(most))
    throw notDrained(`${message}, ${most} s after the drain began`);
  return { state: "halfway", message };
}

/** What did not go is asked again, such as what a disruption budget kept. */
export async function carryOnDrain(context: Acting): Promise<Acted | undefined> {
  const found = await findNode(context);
  return found && { receipt: { said: await evictAll(context, found) } };
}

interface Found {
  readonly cluster: NonNullable<Context["can"]["cluster"]>;
  readonly nodes: NonNullable<Context["can"]["nodes"]>;
  readonly at: ClusterTarget;
  readonly node: ClusterNode;
}

async function findNode({ machine, can: { cluster, nodes }, targets, call }: Context): Promise<Found | undefined> {
  if (cluster === undefined || nodes === undefined) return undefined;
  const at = await clusterOnRecord(() => targets.cluster(""));
  const node = at && (await cluster.findNode(at, nodeIdentityOf(machine), call));
  return node && { cluster, nodes, at, node };
}

async function evictAll({ payload: { args }, call, log, receipt }: Acting, { cluster, at, node }: Found) {
  const scope = { barePods: args.evict_bare_pods === "true", localData: args.delete_local_data === "true" };
  const progress = await cluster.drain(at, node.name, call, scope);
  const where = `node ${node.name} of ${at.name}`;
  for (const [by, why] of Object.entries(ONLY_WHEN_ASKED)) {
    const kept = progress.refused.filter((each) => each.by === by).map(({ pod }) => pod);
    if (kept.length > 0) throw notDrained(`${where}: ${why(namedPods(kept))}`);
  }
  const said = describe(progress);
  if (said !== receipt?.said) log(`[drain] evicting pods of ${where}; ${said}\n`);
  return said;
}

/** Waiting does not make them go. */
const ONLY_WHEN_ASKED = {
  bare: (pods: string) => `no controller would start ${pods} again; args evict_bare_pods=true of the step evicts them`,
  local_data: (pods: string) => `data of ${pods} would be lost; args delete_local_data=true of the step evicts them`,
} as const;

function describe({ remaining, refused }: DrainProgress): string {
  if (remaining.length === 0) return "no pods remain";
  const [first] = refused;
  if (first === undefined) return podsRemain(remaining);
  const why = first.why === "" ? "" : ` (${first.why})`;
  return `${podsRemain(remaining)}; the cluster keeps ${namedPods(refused.map(({ pod }) => pod))}${why}`;
}

const notDrained = (message: string): StepFailure =>
  new StepFailure("not_drained", message, { facts: { script: "drain_node.sh" } });

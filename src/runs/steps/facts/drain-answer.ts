import type { ClusterTarget } from "../../../capabilities/cluster-target.ts";
import { StepFailure } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/lifecycle.ts";
import { nodeIdentityOf } from "../../../lifecycles/machine/handlers.ts";
import { podsRemain } from "../../../lifecycles/machine/observation.ts";
import type { ProbeAnswer, StepContext } from "../../model/step.ts";
import { SHIPPED_DRAIN_CHECK } from "../scripts/runbooks.ts";

/**
 * Who answers whether the machine's node is drained. A machine that is to be returned may be dead, so that its cluster is asked
 * rather than the machine. Only of a machine that is no node of its cluster nothing but its own system can say whether it serves
 * another one: with `force=true` that is not asked.
 */
export type DrainAnsweredBy = "cluster" | "system" | "nobody";

type Context = StepContext<{ readonly args: Readonly<Record<string, string>> }, "exec", "cluster" | "nodes">;

export async function drainAnsweredBy(context: Context, digest: string): Promise<DrainAnsweredBy> {
  const { payload, params } = context;
  if (digest !== SHIPPED_DRAIN_CHECK || !asksOnlyOfItself(payload.args)) return "system";
  if ((await findNode(context)) !== undefined) return "cluster";
  return params.force === "true" ? "nobody" : "system";
}

/** `node` and `kubeconfig` say of which node the plan wants to know, which only the script can follow. */
function asksOnlyOfItself({ force, ...others }: Readonly<Record<string, string>>): boolean {
  return force !== "true" && Object.keys(others).length === 0;
}

/** The same before anybody has read the script: by its name. */
export const isDrainCheck = ({ script_ref, args }: JsonObject): boolean =>
  script_ref === "drain_check.sh" && asksOnlyOfItself((args ?? {}) as Readonly<Record<string, string>>);

/** @throws StepFailure not_drained while the cluster counts on the machine. */
export async function drainAnswer(by: Exclude<DrainAnsweredBy, "system">, context: Context): Promise<ProbeAnswer> {
  if (by === "nobody")
    return {
      state: "done",
      message: "not checked, by force=true: no cluster on record has a node that is this machine",
    };
  const found = await findNode(context);
  if (found === undefined) return { state: "done", message: "the node is gone from its cluster: nothing to drain" };
  const { cluster, node } = found;
  const where = `node ${node.name} of ${cluster.name}`;
  if (!node.unschedulable)
    throw notDrained(
      `${where} is not cordoned: have it drained by 'machine enter-maintenance' (after 'exit-maintenance', if a failed run left it in MAINTENANCE), then retry`,
    );
  const { nodes } = context.can;
  const present = (await nodes?.listWorkloads(cluster, node.name, context.call)) ?? [];
  // Only the kubelet could confirm that these have ended, and it is dead.
  const isUnconfirmed = context.params.force === "true" && !node.ready && present.length > 0;
  const going = isUnconfirmed ? ((await nodes?.listGoing(cluster, node.name, context.call)) ?? []) : [];
  const remaining = present.filter((pod) => !going.includes(pod));
  if (remaining.length > 0)
    throw notDrained(
      `${where} is cordoned, but ${podsRemain(remaining)}: wait until 'machine show' says that it is Drained, or move them away, then retry`,
    );
  const rest =
    going.length === 0 ? "" : `; pods that are terminating, which its dead kubelet cannot confirm: ${going.length}`;
  return {
    state: "done",
    message: `${where} is cordoned, and nothing is left on it but daemons and static pods${rest}`,
  };
}

async function findNode({ machine, can: { cluster, nodes }, targets, call }: Context) {
  if (cluster === undefined || nodes === undefined) return undefined;
  const target = await clusterOnRecord(() => targets.cluster(""));
  if (target === undefined) return undefined;
  const node = await cluster.findNode(target, nodeIdentityOf(machine), call);
  return node === undefined ? undefined : { cluster: target, node };
}

/** A machine of which no cluster is known is no reason to fail: others ask it themselves. */
export async function clusterOnRecord(find: () => Promise<ClusterTarget>): Promise<ClusterTarget | undefined> {
  try {
    return await find();
  } catch (error) {
    if (error instanceof StepFailure && error.code === "reference_missing") return undefined;
    throw error;
  }
}

const notDrained = (message: string): StepFailure =>
  new StepFailure("not_drained", message, { facts: { script: "drain_check.sh" } });

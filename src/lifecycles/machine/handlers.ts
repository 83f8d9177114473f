import type { CallContext } from "../../capabilities/call.ts";
import type { ClusterNode, NodeIdentity } from "../../capabilities/cluster.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import type { Provider } from "../../capabilities/provider.ts";
import { type Duration, milliseconds, minutes, seconds } from "../../kernel/duration.ts";
import { type Handlers, nothingToDo, type Outcome, waitFor } from "../../kernel/outcome.ts";
import type { machineLifecycle } from "./lifecycle.ts";
import { type Machine, sshAddressOf } from "./machine.ts";
import { isDrained, podsRemain } from "./observation.ts";

export interface MachineContext {
  readonly call: CallContext;
  /** Of the machine. */
  readonly provider: Provider;
  /** The cluster of this name, or the machine's own when there is none; undefined when it is not on record. */
  cluster(name?: string): Promise<ClusterTarget | undefined>;
}

const RECHECK = minutes(15);
const AT_ONCE = milliseconds(0);
/** How often a node that is being emptied is asked again: each time the pods that may not go yet are asked anew. */
const DRAIN_POLL: Duration = seconds(2);
/** A drained node that somebody uncordons under our hands is drained again. */
const STILL_DRAINED: Duration = minutes(1);

type NoEvent = Outcome<never>;

/**
 * Runs work on machines and reconcilers look at them; by itself a machine only keeps its node out of the cluster's use while it is
 * in maintenance, and hands it back afterwards.
 *
 * Whose cordon it is stands on the node itself, in the same write as the cordon. The fact that goes before it only says where to
 * look: whoever dies between the two leaves a fact without a cordon, which is harmless, and never a cordon without a fact.
 */
export const machineHandlers: Handlers<typeof machineLifecycle, Machine, MachineContext> = {
  READY: handBack,
  IN_SERVICE: handBack,
  // At work by its run, so that the sweep must find a wake-up here.
  PROVISIONING: async () => nothingToDo(RECHECK),

  async MAINTENANCE(machine, context) {
    if (machine.state.drain !== true) return nothingToDo(null);
    if (isDrained(machine)) return nothingToDo(STILL_DRAINED);
    const { cluster } = context.provider.can;
    const target = await context.cluster();
    if (cluster === undefined || target === undefined) return nothingToDo(null);
    const node = await cluster.findNode(target, nodeIdentityOf(machine), context.call);
    if (node === undefined) return waitFor("no node to drain; the next look at the machine confirms it", DRAIN_POLL);
    return drain(machine, { cluster: target, node }, context);
  },
};

interface Place {
  readonly cluster: ClusterTarget;
  readonly node: ClusterNode;
}

async function drain(machine: Machine, { cluster: target, node }: Place, context: MachineContext): Promise<NoEvent> {
  const { cluster } = context.provider.can;
  if (cluster === undefined) return nothingToDo(null);
  if (!node.unschedulable) {
    const { cordoned } = machine.facts;
    if (cordoned?.cluster !== target.name || cordoned.node !== node.name)
      return waitFor(`about to cordon node ${node.name} of ${target.name}`, AT_ONCE, {
        facts: { cordoned: { cluster: target.name, node: node.name } },
      });
    await cluster.setSchedulable(target, node.name, false, context.call);
  }
  const { remaining } = await cluster.drain(target, node.name, context.call);
  return remaining.length > 0
    ? waitFor(`draining node ${node.name} of ${target.name}: ${podsRemain(remaining)}`, DRAIN_POLL)
    : waitFor(`node ${node.name} of ${target.name} is drained; the next look at the machine confirms it`, DRAIN_POLL);
}

/** Uncordons what we cordoned, and nothing else. */
async function handBack(machine: Machine, context: MachineContext): Promise<NoEvent> {
  const { cordoned } = machine.facts;
  if (cordoned === null) return nothingToDo(null);
  const done = nothingToDo(null, { facts: { cordoned: null } });
  const { cluster } = context.provider.can;
  const target = await context.cluster(cordoned.cluster);
  // A cluster that is not on record any more is nobody's of ours, and neither are its nodes.
  if (cluster === undefined || target === undefined) return done;
  const node = await cluster.findNode(target, nodeIdentityOf(machine), context.call);
  if (node?.cordonedByUs) await cluster.setSchedulable(target, node.name, true, context.call);
  return done;
}

/** By what the machine's node is found. */
export const nodeIdentityOf = ({ spec, facts }: Pick<Machine, "spec" | "facts">): NodeIdentity => ({
  systemUuid: facts.systemUuid,
  serial: spec.serial ?? facts.serial,
  addresses: [sshAddressOf({ spec, facts }) ?? []].flat(),
});

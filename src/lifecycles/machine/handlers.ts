import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import type { ClusterNode, NodeIdentity } from "../../capabilities/cluster.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import { isSilence } from "../../capabilities/device-failure.ts";
import type { Provider } from "../../capabilities/provider.ts";
import { AppError, StepFailure } from "../../kernel/errors.ts";
import { type Handlers, nothingToDo, type Outcome, waitFor } from "../../kernel/outcome.ts";
import { type Duration, milliseconds, minutes, seconds } from "../../kernel/time/duration.ts";
import { describeDrain } from "./drain-progress.ts";
import type { machineLifecycle } from "./lifecycle.ts";
import { type CordonedNode, drainScopeOf, type Machine, sshAddressOf } from "./machine.ts";
import { isDrained } from "./observation.ts";

export interface MachineContext {
  readonly call: CallContext;
  /** Of the machine. */
  readonly provider: Provider;
  /** The cluster of this name, or the machine's own when there is none; undefined when it is not on record. */
  cluster(name?: string): Promise<ClusterTarget | undefined>;
  /** @throws StepFailure where there is none, or nothing to sign in with. */
  bmc(): Promise<BmcTarget>;
}

const RECHECK = minutes(15);
const AT_ONCE = milliseconds(0);
/** How often a node that is being drained is checked: each time the remaining pods are asked to go again. */
const DRAIN_POLL: Duration = seconds(2);
/** A drained node that somebody uncordons under our hands is drained again. */
const STILL_DRAINED: Duration = minutes(1);

type NoEvent = Outcome<never>;

/**
 * Runs work on machines and the reconciler checks them; by itself a machine only keeps its node out of the cluster's use while it is
 * in maintenance, hands it back afterwards, and puts out the light that an RMA lit once it is back.
 *
 * Whose cordon it is stands on the node itself, in the same write as the cordon. The fact that goes before it only says where to
 * pass: a replica that dies between the two leaves a fact without a cordon, which is harmless, and never a cordon without a fact.
 */
export const machineHandlers: Handlers<typeof machineLifecycle, Machine, MachineContext> = {
  FACTORY_READY: putOutLocator,
  READY: tidyUp,
  IN_SERVICE: tidyUp,
  // At work by its run, so that the sweep must find a wake-up here.
  PROVISIONING: async () => nothingToDo(RECHECK),

  async MAINTENANCE(machine, context) {
    if (machine.state.drain !== true) return nothingToDo(null);
    if (isDrained(machine)) return nothingToDo(STILL_DRAINED);
    const { cluster } = context.provider.can;
    const target = await context.cluster();
    if (cluster === undefined || target === undefined) return nothingToDo(null);
    const node = await cluster.findNode(target, nodeIdentityOf(machine), context.call);
    if (node === undefined) return waitFor(whyNoNode(machine), DRAIN_POLL);
    return drain(machine, { cluster: target, node }, context);
  },
};

/** A node that may be this machine's keeps it from being drained, as the last check said. */
function whyNoNode({ conditions }: Machine): string {
  const drained = conditions.find(({ type }) => type === "Drained");
  return drained?.reason === "NodeContradicts"
    ? drained.message
    : "no node to drain; the next check of the machine confirms it";
}

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
  const progress = await cluster.drain(target, node.name, context.call, drainScopeOf(machine));
  return progress.remaining.length > 0
    ? waitFor(`node ${node.name} of ${target.name}: ${describeDrain(progress)}`, DRAIN_POLL)
    : waitFor(`node ${node.name} of ${target.name} is drained; the next check of the machine confirms it`, DRAIN_POLL);
}

/** One thing a pass: each is on record until it is done. */
async function tidyUp(machine: Machine, context: MachineContext): Promise<NoEvent> {
  const { cordoned } = machine.facts;
  return cordoned === null ? putOutLocator(machine, context) : handBack(machine, cordoned, context);
}

/** Best effort: a light that stays on is a nuisance, and never a reason to fail. */
async function putOutLocator({ facts }: Machine, { provider, bmc, call }: MachineContext): Promise<NoEvent> {
  if (!facts.locatorLit) return nothingToDo(null);
  const done = nothingToDo(null, { facts: { locatorLit: false } });
  const { locator } = provider.can;
  if (locator === undefined) return done;
  try {
    await locator.setLocator(await bmc(), "dark", call);
  } catch (error) {
    // Credentials that cannot be read tell of nothing that could be waited for here; a database that is away or slow comes back.
    const isForGood = error instanceof AppError && error.kind !== "unavailable" && error.kind !== "deadline_exceeded";
    if (call.signal.aborted || !(error instanceof StepFailure || isForGood)) throw error;
    if (isSilence(error)) return nothingToDo(RECHECK);
  }
  return done;
}

/** Uncordons what we cordoned, and nothing else. */
async function handBack(machine: Machine, cordoned: CordonedNode, context: MachineContext): Promise<NoEvent> {
  const done = nothingToDo(machine.facts.locatorLit ? AT_ONCE : null, { facts: { cordoned: null } });
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

import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import type { NodeIdentity } from "../../capabilities/cluster.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import { describeContradiction, describeSeveral, type NodeMatch } from "../../capabilities/clusters/node-identity.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { ListedNode } from "../../capabilities/node-list.ts";
import type { Provider } from "../../capabilities/provider.ts";
import type { SshTarget } from "../../capabilities/ssh-target.ts";
import type { MachineVitals } from "../../capabilities/vitals.ts";
import type { Cause, DeviceFamily } from "../../kernel/causes.ts";
import { causeOf, messageOf, StepFailure } from "../../kernel/errors.ts";
import { portMacOf } from "../../kernel/ids.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { nodeIdentityOf } from "../../lifecycles/machine/handlers.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import {
  isLeftOver,
  type NodeDoubt,
  type NodeSighting,
  type Seen,
  type Sighting,
} from "../../lifecycles/machine/sighting.ts";
import type { NodeLists } from "./node-lists.ts";

/** Where something of a machine is to be checked, or why it cannot be. */
export type Place<T> =
  | { readonly is: "at"; readonly target: T }
  | { readonly is: "nowhere"; readonly reason: string; readonly message: string; readonly cause?: Cause }
  /** There is such a place, but nobody can be asked there. */
  | { readonly is: "missed"; readonly reason: string; readonly message: string; readonly cause?: Cause }
  /** There is such a place, but where it is cannot be read. */
  | { readonly is: "unknown" };

/** Where all there is to see of a machine is. */
export interface CheckPlaces {
  readonly provider: Provider;
  readonly bmc: Place<BmcTarget>;
  readonly ssh: Place<SshTarget>;
  /** Where its node may be, the likeliest first. */
  readonly clusters: readonly Place<ClusterTarget>[];
  readonly alerts: readonly string[];
}

export interface CheckFrame {
  readonly machine: Machine;
  readonly places: CheckPlaces;
  readonly nodes: NodeLists;
  readonly call: CallContext;
  readonly clock: Clock;
  /** What its BMC said last still holds. Absent: it is asked. */
  readonly bmcRests?: boolean;
}

/** Checks a machine from all sides at once. What fails on one side is part of the answer, and hides no other. */
export async function checkMachine(frame: CheckFrame): Promise<Sighting> {
  const [ssh, rested, node] = await Promise.all([checkSsh(frame), checkBmc(frame), checkNode(frame)]);
  // A system that has gone silent may have been switched off: the next thing to know.
  const bmc = frame.bmcRests && ssh.is === "missed" ? await checkBmc({ ...frame, bmcRests: false }) : rested;
  return { ssh, bmc, node, alerts: frame.places.alerts };
}

/** No sign-in: the keys are exchanged, and that is all that is asked. */
async function checkSsh({ places: { ssh, provider }, call, clock }: CheckFrame): Promise<Seen<{ hostKey: string }>> {
  const { exec } = provider.can;
  if (exec === undefined) return { is: "unknown" };
  if (ssh.is !== "at") return ssh;
  return seen(clock, call, async () => ({ hostKey: await exec.readHostKey(ssh.target, call) }));
}

/** A provider without vitals still reads the power state, which shows whether the BMC answers. */
async function checkBmc({ places, call, clock, bmcRests }: CheckFrame): Promise<Seen<MachineVitals>> {
  const { bmc, provider } = places;
  const { vitals, power } = provider.can;
  if (bmcRests || (vitals === undefined && power === undefined)) return { is: "unknown" };
  if (bmc.is !== "at") return bmc;
  return seen(clock, call, async () => {
    if (vitals !== undefined) return vitals.readVitals(bmc.target, call);
    const state = await power?.readPower(bmc.target, call);
    return { serial: null, systemUuid: null, power: state ?? "unknown", health: "unknown", ailments: [] };
  });
}

/**
 * The first cluster in which it is Ready. Where it is in none, the first in which it lives: a silent node may be all that is left
 * of it where people have moved it away from. Where it lives in none, what the likeliest of those that there are says.
 */
async function checkNode(frame: CheckFrame): Promise<Seen<NodeSighting>> {
  const seen: Seen<NodeSighting>[] = [];
  for (const cluster of frame.places.clusters) {
    const here = await checkCluster(cluster, frame);
    // It may be in the one that does not answer, so that the next one proves nothing.
    if (here.is === "unknown" || here.is === "missed" || isReady(here)) return here;
    seen.push(here);
  }
  return (
    seen.find((one) => isAlive(one, frame.machine)) ??
    seen.find((one) => one.is === "seen" && one.what.doubt !== undefined) ??
    seen.find(({ is }) => is === "seen") ??
    seen[0] ?? { is: "unknown" }
  );
}

const isReady = (seen: Seen<NodeSighting>): boolean => seen.is === "seen" && seen.what.node?.ready === true;

const isAlive = (seen: Seen<NodeSighting>, machine: Machine): boolean =>
  seen.is === "seen" && seen.what.node !== null && !isLeftOver(seen.what.node, machine);

async function checkCluster(
  cluster: Place<ClusterTarget>,
  { machine, places: { provider }, nodes, call, clock }: CheckFrame,
): Promise<Seen<NodeSighting>> {
  const list = provider.can.nodes;
  if (cluster.is !== "at") return cluster;
  if (list === undefined) return { is: "unknown" };
  const identity = nodeIdentityOf(machine);
  const found = await seen(clock, call, () => nodes.find(list, cluster.target, identity, call));
  if (found.is !== "seen") return found;
  if (found.what === undefined) return { is: "unknown" };
  const { match, at } = found.what;
  const doubt = doubtOf(cluster.target.name, match, identity);
  if (doubt !== undefined)
    return { is: "seen", at, what: { cluster: cluster.target.name, node: null, workloads: null, doubt } };
  const node = match.is === "one" ? match.node : null;
  // Only of nodes that are cordoned, which are few: the others are not drained, whatever runs on them.
  const workloads = node?.unschedulable
    ? await list.listWorkloads(cluster.target, node.name, call).catch(() => null)
    : null;
  return { is: "seen", at, what: { cluster: cluster.target.name, node, workloads } };
}

function doubtOf(cluster: string, match: NodeMatch<ListedNode>, identity: NodeIdentity): NodeDoubt | undefined {
  if (match.is === "several")
    return { reason: "SeveralNodes", message: describeSeveral(cluster, match.nodes, match.by) };
  const [node] = match.is === "none" ? match.contradicting : [];
  return node && { reason: "NodeContradicts", message: describeContradiction(cluster, node, identity) };
}

const MISSED: Readonly<Record<DeviceFamily, string>> = {
  silent: "NoAnswer",
  busy: "Busy",
  keeps_out: "CredentialsRefused",
  forbids: "CredentialsRefused",
  unproven: "IdentityNotProven",
  odd: "AnswerMakesNoSense",
  declines: "Refused",
};

/** A check that was cut off from our side, because we stop, says nothing about the machine. */
async function seen<T>(clock: Clock, call: CallContext, check: () => Promise<T>): Promise<Seen<T>> {
  const at = clock.now();
  try {
    return { is: "seen", at, what: await check() };
  } catch (error) {
    const isStopped = call.signal.aborted && !(call.signal.reason instanceof StepFailure);
    if (isStopped || !(error instanceof StepFailure)) throw error;
    const reason = error instanceof DeviceFailure ? MISSED[error.family] : "NotAsked";
    return { is: "missed", reason, message: messageOf(error), cause: causeOf(error) };
  }
}

/** The MAC addresses that its BMC reports; undefined when they cannot be read now. */
export async function readMacs({ places: { bmc, provider }, call }: CheckFrame): Promise<string[] | undefined> {
  const { system } = provider.can;
  if (system === undefined || bmc.is !== "at") return undefined;
  try {
    return portMacs((await system.identify(bmc.target, call)).macs);
  } catch (error) {
    if (error instanceof StepFailure) return undefined;
    throw error;
  }
}

/** Firmware writes zeros, or the address of a group, where it could read none: many machines would seem to be one. */
const portMacs = (macs: readonly string[]): string[] =>
  [...new Set(macs.flatMap((mac) => portMacOf(mac) ?? []))].slice(0, MOST_MACS);
const MOST_MACS = 64;

/** Reads what a machine from the factory is; undefined when that cannot be read now. */
export async function inspectMachine({
  places: { bmc, provider },
  call,
  clock,
}: CheckFrame): Promise<JsonObject | undefined> {
  const { system: inspect } = provider.can;
  if (inspect === undefined || bmc.is !== "at") return undefined;
  try {
    const { serial, systemUuid, macs, vendor, model } = await inspect.identify(bmc.target, call);
    const firmware = await inspect.readFirmware(bmc.target, call);
    return {
      serial,
      systemUuid,
      macs: portMacs(macs),
      vendor,
      model,
      firmware: Object.fromEntries(firmware.map(({ name, version }) => [name, version])),
      bmcFirmware: firmware.find(({ name }) => name === "BMC")?.version ?? null,
      // Whatever was installed here before is not what has come from the factory.
      sshHostKey: null,
      bootId: null,
      joinedCluster: null,
      observedAt: clock.now().toISOString(),
    };
  } catch (error) {
    if (error instanceof StepFailure) return undefined;
    throw error;
  }
}

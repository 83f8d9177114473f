import { fingerprintOf, isSameHostKey } from "../../capabilities/host-key.ts";
import type { Cause } from "../../kernel/causes.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { namedList } from "../../kernel/named-list.ts";
import { minutes } from "../../kernel/time/duration.ts";
import { type Condition, type ConditionType, holds, type ObservedCondition } from "./conditions.ts";
import type { Machine } from "./machine.ts";
import {
  contradictionOf,
  describeWrongKey,
  isLeftOver,
  type NodeSighting,
  pinnedKeyOf,
  type Seen,
  type Sighting,
} from "./sighting.ts";

/** Checks in a row that found a condition untrue which is not believed yet. */
export type Misses = { readonly [T in ConditionType]?: number };

/** A single miss is a lost packet or a busy BMC; after two misses the machine is not reached. */
export const MISSES_TO_BELIEVE = 2;

/** Why a BMC that does not answer counts as reached. */
const RACK_AT_WORK = "RackAtWork";

export interface Verdict {
  readonly observed: readonly ObservedCondition[];
  readonly misses: Misses;
  /** What was read of the machine, as far as it differs from what is known. */
  readonly facts: JsonObject;
  /** It has come from the factory and its BMC answers for the right machine: it can be inspected and taken in. */
  readonly mayBeInspected: boolean;
  /** Its BMC answers for the right machine, and may be asked for its MAC addresses. */
  readonly mayReadMacs: boolean;
  readonly isBmcSeen: boolean;
}

/**
 * What one check makes known of a machine. Pure; how the machine is checked is the reconciler's affair.
 *
 * While a run works on the machine, nothing is said about what is the run's own to prove. While its rack does (`rackAtWork`), nobody is
 * called because its BMC does not answer: the rack restarts it, and says itself what comes of that.
 */
export function interpretSighting(
  machine: Machine,
  sighting: Sighting,
  misses: Misses,
  rackAtWork: string | null = null,
): Verdict {
  const observed: ObservedCondition[] = [];
  const missesAfter: { [T in ConditionType]?: number } = {};
  const say = (type: ConditionType, status: boolean, reason: string, { message = "", cause }: Why = {}) =>
    void observed.push({ type, status, reason, message, ...(cause && { cause }) });
  const doubt = (type: "Reachable" | "BMCReachable", reason: string, why: Why): boolean => {
    const known = conditionOf(machine, type);
    const count = Math.min((misses[type] ?? 0) + 1, MISSES_TO_BELIEVE);
    const isBelieved = known?.status === false || count >= MISSES_TO_BELIEVE;
    missesAfter[type] = count;
    // The words of one failure vary from check to check: the first ones stay for as long as the reason does. Keys do not: which one
    // is shown, and which is pinned, is what people go by.
    const isSame = known?.status === false && known.reason === reason && reason !== "HostKeyChanged";
    if (isBelieved) say(type, false, reason, isSame ? { cause: why.cause, ...known } : why);
    return isBelieved;
  };

  const key = judgeKey(machine, sighting.ssh);
  let isKeyWrong = false;
  if (sighting.ssh.is === "seen") {
    if (key.is === "wrong") isKeyWrong = doubt("Reachable", "HostKeyChanged", key);
    else say("Reachable", true, "SshAnswers");
  } else if (sighting.ssh.is === "missed" && isOffOnPurpose(machine, sighting))
    say("Reachable", false, "OffOnPurpose", { message: `powered off by run ${machine.facts.offOnPurpose?.run}` });
  else if (sighting.ssh.is === "nowhere") say("Reachable", false, sighting.ssh.reason, sighting.ssh);
  else if (sighting.ssh.is === "missed") doubt("Reachable", sighting.ssh.reason, sighting.ssh);

  const { bmc } = sighting;
  if (bmc.is === "seen") say("BMCReachable", true, "BmcAnswers");
  else if (bmc.is === "nowhere") say("BMCReachable", false, bmc.reason, bmc);
  else if (bmc.is === "missed" && rackAtWork !== null && conditionOf(machine, "BMCReachable")?.status !== false) {
    // Once the rack has let go, a single further miss is believed.
    missesAfter.BMCReachable = MISSES_TO_BELIEVE;
    if (holds(machine.conditions, "BMCReachable"))
      say("BMCReachable", true, RACK_AT_WORK, {
        message: `does not answer while rack ${rackAtWork} works on it`,
        cause: bmc.cause, // such as the certificate that it shows since, which people are asked to accept
      });
  } else if (bmc.is === "missed") doubt("BMCReachable", bmc.reason, bmc);

  observed.push(...judgeCluster(machine, sighting.node), ...judgeHealth(machine, sighting));
  const contradiction = bmc.is === "seen" ? contradictionOf(machine, bmc.what) : undefined;
  if (machine.activeRunId === null) {
    observed.push(...judgeProvisioned(machine, sighting.ssh, { isKeyWrong, isKeyRight: key.is === "right" }));
    const trouble = contradiction ?? (isKeyWrong ? { ...key, reason: "HostKeyChanged" } : undefined);
    observed.push(
      ...judgeIntervention(machine, trouble, {
        WrongSerial: bmc.is === "seen" && contradiction === undefined,
        WrongIdentity: bmc.is === "seen" && contradiction === undefined,
        HostKeyChanged: sighting.ssh.is === "seen" && key.is !== "wrong",
      }),
    );
  }
  const isRightBmc = bmc.is === "seen" && contradiction === undefined;
  return {
    observed,
    misses: missesAfter,
    facts: contradiction === undefined ? factsOf(machine, sighting) : {},
    mayBeInspected: isRightBmc && machine.state.name === "FACTORY_READY" && machine.activeRunId === null,
    mayReadMacs: isRightBmc && machine.activeRunId === null,
    isBmcSeen: bmc.is === "seen",
  };
}

/** Whether all that a check asks its BMC is known: then the BMC need not be asked again as long as it reports what changes. */
export const mayRestBmc = ({ state, conditions, facts, activeRunId }: Machine): boolean =>
  state.name !== "FACTORY_READY" &&
  activeRunId === null &&
  holds(conditions, "BMCReachable") &&
  !holds(conditions, "NeedsIntervention") &&
  facts.offOnPurpose === null;

/** Nobody misses a machine that was switched off on purpose, for as long as its BMC says that it is off. */
const isOffOnPurpose = ({ facts }: Machine, { bmc }: Sighting): boolean =>
  facts.offOnPurpose !== null && bmc.is === "seen" && bmc.what.power === "off";

/** Whether something was seen in the phase in which the machine is now; before that, it may have been another system. */
const isOfNow = ({ stateSince }: Machine, { at }: { readonly at: Date }): boolean => at > stateSince;

const conditionOf = ({ conditions }: Pick<Machine, "conditions">, type: ConditionType): Condition | undefined =>
  conditions.find((condition) => condition.type === type);

/** Why something does not hold: for people, and for programs. */
interface Why {
  readonly message?: string;
  readonly cause?: Cause | undefined;
}

type Key = Why & { readonly is: "right" | "wrong" | "any" };

function judgeKey(machine: Machine, ssh: Sighting["ssh"]): Key {
  const pinned = pinnedKeyOf(machine);
  if (ssh.is !== "seen" || pinned === null) return { is: "any" };
  if (isSameHostKey(pinned.key, ssh.what.hostKey)) return { is: "right" };
  const { activeRunId } = machine;
  if (activeRunId === null) return { is: "wrong", ...describeWrongKey(machine, pinned, ssh.what.hostKey) };
  const shown = fingerprintOf(ssh.what.hostKey);
  const message = `shows host key ${shown} instead of the pinned one while run ${activeRunId} works on the machine; if the run installs a new system, it pins the new key`;
  return { is: "wrong", message };
}

function judgeCluster(machine: Machine, seen: Seen<NodeSighting>): ObservedCondition[] {
  if (seen.is === "unknown") return [];
  if (seen.is === "missed") return keptOut(machine, seen);
  const observed = (type: "InCustomerCluster" | "Drained", status: boolean, reason: string, message = "") => {
    // What was read before somebody proved something says nothing of it, be it another reason for the same: a machine that joined
    // would be told to be in no cluster. A run that proves what held already flips no condition: its end is the change of phase.
    const known = conditionOf(machine, type);
    const isOlder =
      seen.is === "seen" && known !== undefined && (known.lastTransition >= seen.at || !isOfNow(machine, seen));
    return isOlder ? [] : [{ type, status, reason, message }];
  };
  const withoutNode = (reason: string, message: string) => [
    ...observed("InCustomerCluster", false, reason, message),
    ...(isOutOfService(machine)
      ? observed("Drained", true, "NotInCluster")
      : observed("Drained", false, "NotInMaintenance")),
  ];
  if (seen.is === "nowhere") return withoutNode(seen.reason, seen.message);
  const { node, workloads, cluster, doubt } = seen.what;
  if (doubt !== undefined)
    return [
      ...observed("InCustomerCluster", doubt.reason === "SeveralNodes", doubt.reason, doubt.message),
      ...observed("Drained", false, doubt.reason, doubt.message),
    ];
  if (node === null) return withoutNode("NotJoined", `cluster ${cluster} has no node that is this machine`);
  // Where the present system was joined, a silent node of an earlier boot only has not been heard of since the machine was rebooted.
  if (isLeftOver(node, machine) && machine.facts.joinedCluster !== cluster)
    return withoutNode("NodeLeftOver", `node ${node.name} of ${cluster} is silent and describes an earlier system`);
  const where = `node ${node.name} of ${cluster}`;
  const inCluster = node.ready
    ? observed("InCustomerCluster", true, "NodeReady", where)
    : observed("InCustomerCluster", true, "NodeNotReady", `${where}: ${node.reason}`);
  if (!node.unschedulable) return [...inCluster, ...observed("Drained", false, "NotCordoned", where)];
  if (workloads === null) return inCluster;
  if (workloads.length > 0) return [...inCluster, ...observed("Drained", false, "PodsRemain", podsRemain(workloads))];
  return [...inCluster, ...observed("Drained", true, "NodeDrained", where)];
}

/** A cluster that does not let us in says nothing of the machine: what is known of it stays, with why nobody can tell more. */
function keptOut(machine: Machine, { reason, message, cause }: Seen<never> & { is: "missed" }): ObservedCondition[] {
  const status = holds(machine.conditions, "InCustomerCluster");
  return [{ type: "InCustomerCluster", status, reason, message, ...(cause && { cause }) }];
}

const MOST_NAMED = 3;

/** "4 pods remain: a, b, c and 1 more". */
export const podsRemain = (names: readonly string[]): string =>
  `${names.length} ${names.length === 1 ? "pod remains" : "pods remain"}: ${namedPods(names)}`;

/** "a, b, c and 1 more". */
export const namedPods = (names: readonly string[]): string => namedList(names, MOST_NAMED);

/** A run does not change whether the machine was taken out of service before it. */
function isOutOfService({ state }: Machine): boolean {
  const phase = state.name === "PROVISIONING" ? state.before : state.name;
  return phase === "MAINTENANCE" || phase === "RMA";
}

const OPEN_ALERT = "OpenAlert";
/** It stands in every list and in every event of the condition; alerts and parts may be many, and their names long. */
const LONGEST_MESSAGE = 2_000;
const degraded = (reason: string, message: string): ObservedCondition[] => {
  const short = message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE - 1).toWellFormed()}…` : message;
  return [{ type: "Degraded", status: true, reason, message: short }];
};

/** A BMC that does not answer says nothing about health: what it said last stays. */
function judgeHealth(machine: Machine, { bmc, alerts }: Sighting): ObservedCondition[] {
  if (bmc.is !== "seen") return judgeAlerts(machine, alerts);
  const { ailments, health } = bmc.what;
  const withAlerts = (message: string) => [message, ...alerts].join("; ");
  if (ailments.length > 0) {
    const named = ailments.map(({ name, health: how }) => `${name} is ${how}`).join(", ");
    return degraded("PartNotWell", withAlerts(named));
  }
  if (health === "critical")
    return degraded("BmcHealthCritical", withAlerts("the BMC reports health critical, and no part"));
  if (health === "warning")
    return degraded("BmcHealthWarning", withAlerts("the BMC reports health warning, and no part"));
  if (alerts.length > 0) return degraded(OPEN_ALERT, alerts.join("; "));
  return [{ type: "Degraded", status: false, reason: health === "ok" ? "Healthy" : "HealthNotReported", message: "" }];
}

/**
 * What open alerts alone make known, each in a few words: while the BMC is silent, and between two checks when alerts come or end.
 * What the BMC last said of itself stays; the next check names both.
 */
export function judgeAlerts(machine: Pick<Machine, "conditions">, alerts: readonly string[]): ObservedCondition[] {
  const known = conditionOf(machine, "Degraded");
  if (known?.status === true && known.reason !== OPEN_ALERT) return [];
  if (alerts.length > 0) return degraded(OPEN_ALERT, alerts.join("; "));
  if (known?.status !== true) return [];
  return [{ type: "Degraded", status: false, reason: "AlertsEnded", message: "" }];
}

/** Why a machine is not Provisioned after an installation that was begun and did not prove itself. */
export const NOT_PROVEN = "InstallationNotProven";
/** A machine that restarts late still shows the system that the installation replaces. */
const RESTARTS_WITHIN = minutes(1);

/** Installations prove it; what shows that the system is not the installed one any more takes it back. */
function judgeProvisioned(
  machine: Machine,
  ssh: Sighting["ssh"],
  { isKeyWrong, isKeyRight }: { readonly isKeyWrong: boolean; readonly isKeyRight: boolean },
): ObservedCondition[] {
  const known = conditionOf(machine, "Provisioned");
  const said = (status: boolean, reason: string, message = ""): ObservedCondition[] => [
    { type: "Provisioned", status, reason, message },
  ];
  const phase = machine.state.name;
  const isBegun = known?.status === false && known.reason === NOT_PROVEN;
  if (phase === "FACTORY_READY") return isBegun ? [] : said(false, "FactorySystem");
  if (phase === "RMA") return said(false, "InRma");
  if (known === undefined) return said(false, "NeverProvisioned");
  const isProvable = machine.facts.sshHostKey !== null;
  if (known.status && isProvable && isKeyWrong)
    return said(false, "HostKeyChanged", "the system shows another host key than the installed one");
  if (!known.status && known.reason === "HostKeyChanged" && isProvable && isKeyRight)
    return said(true, "HostKeyProven", "the system shows the host key of the installed one again");
  const hasRestarted = ssh.is === "seen" && ssh.at.getTime() - machine.stateSince.getTime() > RESTARTS_WITHIN;
  if (isBegun && isProvable && isKeyRight && hasRestarted)
    return said(true, "HostKeyProven", "the system shows the host key of the one that was installed before");
  return [];
}

/** What checks raise NeedsIntervention for, and end again. */
export const OWN_TROUBLES = ["WrongSerial", "WrongIdentity", "HostKeyChanged"] as const;
type OwnTrouble = (typeof OWN_TROUBLES)[number];

/**
 * What somebody else raised, such as a run that failed, is theirs to end: it is neither overwritten nor ended here. What was
 * raised here ends only when the very thing that was wrong was seen to be right.
 */
function judgeIntervention(
  machine: Machine,
  trouble: (Why & { readonly reason: string }) | undefined,
  isRightAgain: Readonly<Record<OwnTrouble, boolean>>,
): ObservedCondition[] {
  const known = conditionOf(machine, "NeedsIntervention");
  const own = OWN_TROUBLES.find((reason) => reason === known?.reason);
  if (known?.status && own === undefined) return [];
  if (trouble) {
    const { reason, message = "", cause } = trouble;
    return [{ type: "NeedsIntervention", status: true, reason, message, ...(cause && { cause }) }];
  }
  if (known === undefined) return [{ type: "NeedsIntervention", status: false, reason: "NothingFound", message: "" }];
  if (!known.status || own === undefined || !isRightAgain[own]) return [];
  const reason = own === "HostKeyChanged" ? "HostKeyMatches" : "IdentityMatches";
  return [{ type: "NeedsIntervention", status: false, reason, message: "" }];
}

/** What is worth keeping of a check. The boot of a Ready node is that of the system that runs now. */
function factsOf(machine: Machine, { ssh, bmc, node }: Sighting): JsonObject {
  const facts: {
    [fact in "powerState" | "bootId" | "joinedCluster" | "sshHostKeySeen" | "certificateFingerprint"]?: string;
  } & { offOnPurpose?: null } = {};
  // Whoever switched it on, be it at its button, wants it on.
  if (machine.facts.offOnPurpose !== null && bmc.is === "seen" && bmc.what.power === "on") facts.offOnPurpose = null;
  if (bmc.is === "seen" && bmc.what.power !== machine.facts.powerState) facts.powerState = bmc.what.power;
  // From now on the BMC must show it: no password is sent to one that shows another.
  const certificate = bmc.is === "seen" ? bmc.what.certificateFingerprint : undefined;
  if (certificate !== undefined && machine.spec.bmc?.trust === "pin" && machine.facts.certificateFingerprint === null)
    facts.certificateFingerprint = certificate;
  const found = node.is === "seen" && isOfNow(machine, node) ? node.what.node : null;
  const isAtRest = machine.activeRunId === null && machine.state.name !== "PROVISIONING";
  // The first key that is seen is kept, and not one of those that an installation under way shows in passing.
  if (isAtRest && ssh.is === "seen" && machine.spec.ssh !== null && pinnedKeyOf(machine) === null)
    facts.sshHostKeySeen = ssh.what.hostKey;
  if (isAtRest && found?.ready && found.bootId !== null && found.bootId !== machine.facts.bootId)
    facts.bootId = found.bootId;
  // Its owner may name another cluster at any time; where it serves does not change by that.
  if (isAtRest && found?.ready && node.is === "seen" && node.what.cluster !== machine.facts.joinedCluster)
    facts.joinedCluster = node.what.cluster;
  return facts;
}

/** Whether what runs on the machine may be disrupted. */
export const isDrained = (machine: Pick<Machine, "conditions">): boolean => holds(machine.conditions, "Drained");

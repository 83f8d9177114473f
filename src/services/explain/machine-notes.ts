import type { Condition, ConditionType } from "../../lifecycles/machine/conditions.ts";
import { NOT_PROVEN } from "../../lifecycles/machine/observation.ts";
import type { MachineView } from "../machine/view.ts";
import { NO_TROUBLE, nameTrouble, type Trouble, troubleOf } from "./causes.ts";
import { type NextCommand, say } from "./explanation.ts";

/** Something that the operator of a machine has to know. */
export interface MachineNote {
  /** The condition that it was read from, if it was one. */
  readonly type: ConditionType | null;
  /** Of the condition. */
  readonly reason?: string;
  /** "it is not reached over SSH". */
  readonly words: string;
  /** Why; its message is empty when the words say it all. */
  readonly trouble: Trouble;
  /** The same for people. */
  readonly why: string;
  readonly since: Date;
  readonly commands: readonly NextCommand[];
}

/** Conditions of which these values are the bad news, the gravest first. */
const BAD = {
  NeedsIntervention: [true, "needs a person"],
  BMCReachable: [false, "its BMC is not reached"],
  Reachable: [false, "it is not reached over SSH"],
  Degraded: [true, "it is degraded"],
} as const satisfies { readonly [type in ConditionType]?: readonly [status: boolean, words: string] };

/** The gravest first. */
export function notesOf(view: MachineView, now: Date): MachineNote[] {
  const isOff = isSwitchedOff(view);
  return [
    ...badNews(view, "NeedsIntervention"),
    ...badNews(view, "BMCReachable"),
    ...(isOff && view.phase !== "RMA" ? [switchedOff(view)] : []),
    // Nobody expects the system of a machine that is off to answer.
    ...(isOff ? [] : badNews(view, "Reachable")),
    ...unprovenInstallation(view),
    ...clusterTrouble(view),
    ...nodeTrouble(view),
    ...cordoned(view, now),
    ...badNews(view, "Degraded"),
  ];
}

function badNews({ machine, phase }: MachineView, type: keyof typeof BAD): MachineNote[] {
  const [bad, words] = BAD[type];
  // It is no longer checked, and what would help is refused.
  if (phase === "RETIRED") return [];
  return machine.conditions
    .filter((condition) => condition.type === type && condition.status === bad)
    .map(({ reason, message, cause, lastTransition }) => ({
      type,
      reason,
      words,
      trouble: troubleOf(message, cause),
      why: nameTrouble(troubleOf(message, cause)),
      since: lastTransition,
      commands: reason === "OpenAlert" ? [showAlerts(machine.id)] : [],
    }));
}

/** Its disk may hold half a system, whatever answers or does not. */
function unprovenInstallation({ machine, phase }: MachineView): MachineNote[] {
  if (phase === "RETIRED" || phase === "RMA") return [];
  return machine.conditions
    .filter(({ type, status, reason }) => type === "Provisioned" && !status && reason === NOT_PROVEN)
    .map(({ type, reason, message, lastTransition }) => ({
      type,
      reason,
      words: "an installation was begun and is not proven",
      trouble: NO_TROUBLE,
      why: message,
      since: lastTransition,
      commands: [say(`run start --machine ${machine.id} --type REPAVE`, "installs it, and proves the installation")],
    }));
}

/** Reasons that leave open what the machine is to its cluster. */
const OPEN_REASONS: ReadonlySet<string> = new Set(["SeveralNodes", "NodeContradicts"]);

/** Its cluster keeps us out, or nobody can tell which of its nodes is the machine: whether it is drained is not known then. */
function clusterTrouble({ machine, phase }: MachineView): MachineNote[] {
  if (phase === "RETIRED") return [];
  return machine.conditions
    .filter(
      ({ type, reason, cause }) => type === "InCustomerCluster" && (cause !== undefined || OPEN_REASONS.has(reason)),
    )
    .map(({ reason, message, cause, lastTransition }) => {
      const trouble = troubleOf(message, cause);
      return {
        type: "InCustomerCluster",
        reason,
        words: OPEN_REASONS.has(reason)
          ? "it is not clear which node is this machine"
          : "its cluster cannot be asked about it",
        trouble,
        why: cause === undefined ? message : `${nameTrouble(trouble)} (${message})`,
        since: lastTransition,
        commands: [],
      };
    });
}

const showAlerts = (machineId: string): NextCommand =>
  say(
    `machine health-report show ${machineId}`,
    "shows the alerts and their sources; the condition ends with the alerts",
  );

/** A BMC that is not reached tells nothing of the power: what it said last may be long ago. */
export const isSwitchedOff = ({ machine, phase }: MachineView): boolean =>
  machine.facts.powerState === "off" &&
  phase !== "RETIRED" &&
  machine.conditions.every(({ type, status }) => type !== "BMCReachable" || status);

/**
 * Whether nothing but a reset gets its system to answer: unlikely where the BMC says that it is off, where its node or the system
 * itself is heard of, or where the BMC, which would reset it, is silent as well. Undefined until the first check.
 */
export function seemsHung({ machine, phase }: MachineView): boolean | undefined {
  const { conditions, facts, spec } = machine;
  const of = (type: ConditionType) => conditions.find((condition) => condition.type === type);
  const [ssh, bmc, node] = [of("Reachable"), of("BMCReachable"), of("InCustomerCluster")];
  if (spec.bmc === null || phase === "RETIRED" || facts.powerState === "off") return false;
  if (ssh?.status === true || bmc?.status === false || (node?.status === true && node.reason === "NodeReady"))
    return false;
  if (ssh === undefined || bmc === undefined || facts.powerState !== "on") return undefined;
  return ssh.reason === "NoAnswer";
}

export const resetByForce = (machineId: string): NextCommand =>
  say(
    `run start --machine ${machineId} --type REBOOT --param force=true`,
    "resets a hung system at once, without a shutdown",
  );

function switchedOff({ machine }: MachineView): MachineNote {
  const { offOnPurpose } = machine.facts;
  const silent = machine.conditions.find(({ type, status }) => type === "Reachable" && !status);
  return {
    type: null,
    words: offOnPurpose === null ? "it is powered off" : `it was powered off on purpose, by run ${offOnPurpose.run}`,
    trouble: NO_TROUBLE,
    why: "",
    since: silent?.lastTransition ?? machine.stateSince,
    commands: [offOnPurpose === null ? switchOn(machine.id) : powerOn(machine.id)],
  };
}

const powerOn = (machineId: string): NextCommand => say(`machine power on ${machineId}`, "switches it on");

export const switchOn = (machineId: string): NextCommand =>
  say(`run start --machine ${machineId} --type REBOOT`, "switches it on, and proves that it came up");

/** What is being done about its node: moving away what runs on it, or handing it back. */
function nodeTrouble({ machine, phase }: MachineView): MachineNote[] {
  const { outcome, id } = machine;
  if (outcome === null) return [];
  const isDraining = phase === "MAINTENANCE";
  const words = isDraining ? "its node is being drained" : "its node is to be uncordoned";
  const isAtIt = outcome.type === "waiting";
  const trouble = troubleOf(outcome.reason, outcome.cause);
  const show = isDraining
    ? "shows what remains: the drain goes on by itself as soon as the cluster allows it"
    : "shows what it waits for: the uncordon goes on by itself as soon as the cluster allows it";
  return [
    {
      type: null,
      words: isAtIt ? words : `${words}, without success`,
      trouble: isAtIt ? NO_TROUBLE : trouble,
      why: isAtIt ? outcome.reason : nameTrouble(trouble),
      since: outcome.since === undefined ? machine.stateSince : new Date(outcome.since),
      commands: [say(`machine show ${id}`, show)],
    },
  ];
}

/** For so long the last check may be from before the node was uncordoned. */
const SEEN_WITHIN_MS = 30_000;

/** Cordoned, as the last check of its node found it, though no request wants it drained: a run that was cut short, or a person, did it. */
function cordoned({ machine, phase }: MachineView, now: Date): MachineNote[] {
  const drained = machine.conditions.find(isOfCordonedNode);
  if (drained === undefined || machine.state.drain === true) return [];
  const isInUse = phase === "READY" || phase === "IN_SERVICE";
  if (!isInUse && phase !== "MAINTENANCE") return [];
  const isBeingGivenBack = machine.facts.cordoned !== null;
  if (isInUse && (isBeingGivenBack || now.getTime() - machine.stateSince.getTime() < SEEN_WITHIN_MS)) return [];
  const { id } = machine;
  return [
    {
      type: null,
      words: "its node is cordoned, so that nothing new runs there",
      trouble: NO_TROUBLE,
      why: "",
      since: drained.lastTransition,
      commands: isInUse
        ? [
            say(
              `machine enter-maintenance ${id}`,
              "drains it; exit-maintenance then uncordons its node, unless a person cordoned it (kubectl uncordon)",
            ),
          ]
        : [],
    },
  ];
}

const isOfCordonedNode = ({ type, reason }: Condition): boolean =>
  type === "Drained" && (reason === "NodeDrained" || reason === "PodsRemain");

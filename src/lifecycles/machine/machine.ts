import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { DrainScope } from "../../capabilities/cluster.ts";
import type { PowerState } from "../../capabilities/power-control.ts";
import type { MachineId } from "../../kernel/ids.ts";
import type { Json, Thing } from "../../kernel/lifecycle.ts";
import type { ResidueFacts } from "../../kernel/residue.ts";
import type { Conditions } from "./conditions.ts";

/** The specification's phases, in its spelling, everywhere. */
export const MACHINE_PHASES = [
  "FACTORY_READY",
  "READY",
  "PROVISIONING",
  "IN_SERVICE",
  "MAINTENANCE",
  "RMA",
  "RETIRED",
] as const;
export type MachinePhase = (typeof MACHINE_PHASES)[number];

/** Phases in which a run that succeeded can leave a machine. */
export const PHASES_AFTER_RUN = ["IN_SERVICE", "READY", "RMA", "FACTORY_READY", "MAINTENANCE"] as const;
export type PhaseAfterRun = (typeof PHASES_AFTER_RUN)[number];

/** A host on the way to a machine. Its key is pinned from the start: what it forwards is no safer than itself. */
export interface JumpHost {
  readonly address: string;
  readonly port: number;
  /** As in known_hosts: type and key; or its fingerprint. */
  readonly hostKey: string;
  /** Null takes the machine's own user. */
  readonly username: string | null;
}

export interface SshEndpoint {
  readonly address: string;
  readonly port: number;
  /** The key that the machine must show, or its fingerprint; null: the first that is seen is kept. */
  readonly hostKey: string | null;
  /** The nearest to the server first. */
  readonly jumpHosts: readonly JumpHost[];
}

/** The ways to work on machines. `fake` is there only where the server was told to have it. */
export const MACHINE_PROVIDERS = ["datacenter", "redfish", "ipmi", "ironic", "maas", "fake"] as const;
export type MachineProvider = (typeof MACHINE_PROVIDERS)[number];

export const BMC_PROTOCOLS = ["redfish", "ipmi"] as const;
export type BmcProtocol = (typeof BMC_PROTOCOLS)[number];

export interface MachineBmc {
  readonly address: string;
  /** Null takes the usual one of the protocol. */
  readonly port: number | null;
  /** Null takes what the provider prefers. */
  readonly protocol: BmcProtocol | null;
  readonly scheme: BmcTarget["scheme"];
  readonly trust: BmcTarget["trust"]["mode"];
  /** Which of the machines behind the address it is; absent for a BMC, which has but one. */
  readonly path?: string;
}

/** What the owner says about a machine. */
export interface MachineSpec {
  readonly provider: string;
  readonly serial: string | null;
  readonly macs: readonly string[];
  readonly rack: string | null;
  readonly slot: string | null;
  readonly location: string | null;
  readonly customerId: string | null;
  readonly targetCluster: string | null;
  readonly ssh: SshEndpoint | null;
  readonly bmc: MachineBmc | null;
}

/** A node that may have been cordoned by us. */
export type CordonedNode = {
  readonly cluster: string;
  /** Empty: what was cordoned there, if anything, was so by a script of a run, and is found by its mark. */
  readonly node: string;
};

/** What the drain of a maintenance moves away besides pods that start again elsewhere, and lose nothing. */
export type DrainFacts = { readonly [What in keyof DrainScope]: boolean };

/** From one address to another. A type and no interface, so that it is JSON to the compiler. */
export type SshMove = { readonly from: string; readonly to: string };

/**
 * What was read from the machine itself. Every part is null until it has been. Its residue is what ended runs could not undo, until
 * somebody ends the maintenance, or a run makes something new of the machine.
 */
export interface MachineFacts extends ResidueFacts {
  readonly serial: string | null;
  readonly systemUuid: string | null;
  readonly macs: readonly string[] | null;
  /** Versions by what has them. */
  readonly firmware: Readonly<Record<string, string>> | null;
  readonly vendor: string | null;
  readonly model: string | null;
  readonly bmcFirmware: string | null;
  readonly certificateFingerprint: string | null;
  /** The host key that the system showed when its installation was proved. */
  readonly sshHostKey: string | null;
  /** The host key that was seen first, where its owner pins none and no installation has proved one. */
  readonly sshHostKeySeen: string | null;
  /** A run gave it another address; holds for as long as its owner says that it is at `from`. */
  readonly sshMoved: SshMove | null;
  readonly powerState: PowerState | null;
  readonly bootId: string | null;
  readonly observedAt: string | null;
  /** Written before it is cordoned, and kept until it is uncordoned: the replica that carries on knows that there is something to undo. */
  readonly cordoned: CordonedNode | null;
  /** Null while nobody has asked for a maintenance, and of one that was asked for before there was a choice. */
  readonly drainScope: DrainFacts | null;
  /**
   * The cluster in which its node was last proven. That the cluster does not show it any more takes nothing back, since a node may
   * register anew: a new system does, or its node in another cluster.
   */
  readonly joinedCluster: string | null;
  /** Where the system before the present one was a node, which may be there still. */
  readonly leftCluster: string | null;
  /** An RMA lit its locator, and nobody has put it out: that is done once the machine is back, or of use in another way. */
  readonly locatorLit: boolean;
  /** The run by which somebody switched it off on purpose. It counts until the machine is seen on. */
  readonly offOnPurpose: { readonly run: string } | null;
}

export interface Machine extends Thing {
  readonly id: MachineId;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: MachineSpec;
  readonly facts: MachineFacts;
  readonly conditions: Conditions;
  /** The run that is PENDING or RUNNING. */
  readonly activeRunId: string | null;
  readonly state: {
    readonly name: string;
    /** While MAINTENANCE, and a run within it: somebody asked for it, so that what runs on the machine is to be moved away. */
    readonly drain?: boolean;
    /** While PROVISIONING: the run that is changing the machine. */
    readonly run?: string;
    /** While PROVISIONING, and in the MAINTENANCE to which a run's failure or cancel led: the run's job. */
    readonly job?: string;
    /** While there is a job: the phase in which that has found the machine. */
    readonly before?: string;
    /** While PROVISIONING: the phase that follows when the run succeeds. */
    readonly on_success?: string;
    readonly [carried: string]: Json | undefined;
  };
}

/** Fake machines are in the server's own process: all of them have endpoints, and none is on record. */
export const needsEndpoints = ({ provider }: Pick<MachineSpec, "provider">): boolean => provider !== "fake";

/** Where its system answers: where a run has moved it, else where its owner says. */
export function sshAddressOf({ spec, facts }: Pick<Machine, "spec" | "facts">): string | null {
  const { sshMoved } = facts;
  if (spec.ssh === null) return null;
  return sshMoved?.from === spec.ssh.address ? sshMoved.to : spec.ssh.address;
}

type Placed = Pick<Machine, "spec" | "facts">;

/** Which cluster it is to join where nobody names one: what its owner says, else the usual one. */
export const targetClusterOf = ({ spec }: Pick<Machine, "spec">): string => spec.targetCluster ?? "default-cluster";

/** Which cluster is its own: where it was proven to be, whatever its owner has said since; before that, the one it is to join. */
export const ownClusterOf = ({ spec, facts }: Placed): string => facts.joinedCluster ?? targetClusterOf({ spec });

/** What a maintenance that began before there was a choice moves away: everything, as its caller was told then. */
const EVERYTHING: DrainScope = { barePods: true, localData: true };
export const drainScopeOf = ({ facts }: Pick<Machine, "facts">): DrainScope => facts.drainScope ?? EVERYTHING;

/** Where its node may be, the likeliest first: it may have been moved by hand to where its owner says. */
export const clustersToCheck = (machine: Placed): string[] => [
  ...new Set([ownClusterOf(machine), targetClusterOf(machine)]),
];

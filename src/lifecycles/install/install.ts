import type { MachineId } from "../../kernel/ids.ts";
import type { Json, Thing } from "../../kernel/lifecycle.ts";

/** The specification's states, in its spelling, everywhere. */
export const INSTALL_STATES = [
  "discovered",
  "pending",
  "installing",
  "install_failed",
  "installed",
  "active",
  "reprovision",
  "deprovisioning",
  "migrating",
  "retired",
] as const;
export type InstallState = (typeof INSTALL_STATES)[number];

/** The failed attempt with this number is the last: people must see to it. */
export const MAX_INSTALL_ATTEMPTS = 3;

export const ARCHITECTURES = ["x86_64", "arm64", "aarch64"] as const;
export type Architecture = (typeof ARCHITECTURES)[number];
export const BOOT_MODES = ["bios", "uefi"] as const;
export type BootMode = (typeof BOOT_MODES)[number];

/** No machine has more; a node that tells of ever new ones must not fill its record. */
export const MOST_DISKS = 1_024;

/** A disk that was wiped, as the erase environment told of it. */
export type ErasedDisk = {
  readonly disk: string;
  readonly serial: string | null;
  readonly method: string;
  /** Samples were read back and held none of the previous data. */
  readonly verified: boolean;
};

export const STEP_STATES = [
  "pending",
  "running",
  "retrying",
  "rebooting",
  "completed",
  "skipped",
  "failed",
  "rolled_back",
] as const;
export type StepState = (typeof STEP_STATES)[number];

/** A step of the workflow, as far as it is in the present attempt. */
export type InstallStep = {
  readonly sequence: number;
  readonly name: string;
  readonly type: string;
  readonly state: StepState;
  /** How often it was begun. */
  readonly attempts: number;
  /** What the environment told of it last. */
  readonly message: string | null;
  /** The installation is not complete without it. */
  readonly required: boolean;
};

/** What the node told, and how far its install is. */
export interface InstallFacts {
  /** Attempts that failed since the counter was last reset. */
  readonly installAttempts: number;
  readonly lastInstallError: string | null;
  /** Percent of the present attempt, as reported. */
  readonly progress: number | null;
  /** When the present attempt began, or the last one ended: the install timeout counts from here. */
  readonly attemptStartedAt: Date | null;
  /** The last attempt failed, and the next one has not begun: the next boot gets the install script again. */
  readonly attemptFailed: boolean;
  readonly hostname: string | null;
  readonly ipAddress: string | null;
  readonly vendor: string | null;
  readonly model: string | null;
  readonly serialNumber: string | null;
  readonly systemUuid: string | null;
  readonly lastSeenAt: Date | null;
  /** The run that installs through it and holds the machine on its behalf; null when people do. */
  readonly orderedBy: string | null;
  /** Tells the installation that a run ordered last from those before it; stays when it is over. */
  readonly orderId: string | null;
  /** `complete` came with the token of its boot: the reporter has received the script. */
  readonly tokenShown: boolean;
  /** Disks that are wiped and read back, while deprovisioning. */
  readonly erasedDisks: readonly ErasedDisk[];
  /** Those of its workflow that the present boot carries out, in their order. */
  readonly steps: readonly InstallStep[];
}

/** What a node is there for; a migration takes it to another. */
export type Assignments = {
  readonly group: string | null;
  readonly workflow: string | null;
  readonly tags: readonly string[];
  readonly customer: string | null;
  readonly cluster: string | null;
};

/** A machine seen through its install: it has the machine's id. */
export interface Install extends Thing {
  readonly id: MachineId;
  /** The address that it boots from the network with. */
  readonly mac: string;
  readonly arch: Architecture;
  readonly bootMode: BootMode;
  readonly groupId: string | null;
  /** Its own; the group's default is not here. */
  readonly workflowId: string | null;
  readonly tags: readonly string[];
  readonly createdAt: Date;
  /** Somebody reported its present attempt as complete, and nothing tells whether that was the machine. */
  readonly isCompleteInDoubt: boolean;
  /** What its own workflow or its group's says: where a complete install leads. */
  readonly promotesWhenComplete: boolean;
  /** What its group, or the next group above that says so, wants: active on the first boot. */
  readonly promotesOnFirstBoot: boolean;
  readonly facts: InstallFacts;
  readonly state: {
    readonly name: string;
    /** While migrating: the machine that takes its place. */
    readonly replacement?: string;
    /** While migrating: what the replacement was given, and what that took the place of. */
    readonly moved?: Assignments;
    readonly displaced?: Assignments;
    /** While migrating: the replacement was approved for it. */
    readonly queued?: boolean;
    readonly [carried: string]: Json | undefined;
  };
}

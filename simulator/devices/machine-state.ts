import type { ImageSpec } from "../site/images.ts";
import type { MachineLogEntry } from "./machine-log.ts";
import type { MachineSpec } from "./machine-spec.ts";
import type { Network } from "./network.ts";
import type { Lie, PendingChange, Power } from "./power.ts";
import type { Trait } from "./profile.ts";

export const RESET_TYPES = [
  "On",
  "ForceOff",
  "GracefulShutdown",
  "GracefulRestart",
  "ForceRestart",
  "PowerCycle",
] as const;
export type ResetType = (typeof RESET_TYPES)[number];

export const BOOT_OVERRIDES = ["Disabled", "Once", "Continuous"] as const;
export const BOOT_TARGETS = ["None", "Pxe", "Cd", "Usb", "Hdd", "BiosSetup", "UefiHttp"] as const;
export const BOOT_MODES = ["UEFI", "Legacy"] as const;

export interface BootOverride {
  readonly enabled: (typeof BOOT_OVERRIDES)[number];
  readonly target: (typeof BOOT_TARGETS)[number];
  readonly mode: (typeof BOOT_MODES)[number];
  readonly httpUri: string | null;
}

export interface VirtualMedium {
  readonly image: string;
  readonly userName: string | null;
  readonly writeProtected: boolean;
  /** What an installer that reads it learns to show; null for a medium that says nothing of that. Absent: it was not read. */
  readonly token?: string | null;
  /** Whom an installer that reads it calls once it has begun. Absent: it was not read. */
  readonly phoneHome?: string | null;
}

/** The drives of the controller: the machine installs from the first. */
export type VirtualDrive = "media" | "secondMedium";

export type InstallSource = "factory" | "virtual_media" | "pxe" | "uefi_http";

/** An operating system on the disk. */
export interface InstalledSystem {
  readonly image: string;
  readonly digest: string;
  readonly kubeletVersion: string;
  readonly cloudInit: string | null;
  readonly token: string | null;
  readonly source: InstallSource;
  /** Counts the installations of this machine; host keys and machine ids follow from it. */
  readonly number: number;
  /** Real time in milliseconds. */
  readonly installedAt: number;
}

/** What the network boot server would answer; kept with the machine, since it is arranged for each one. */
export interface NetbootOrder {
  readonly image: string;
  readonly cloudInit: string | null;
  readonly token: string | null;
}

/** What was booted from the network. */
export interface NetworkKernel {
  readonly words: Readonly<Record<string, string>>;
  /** Percent. */
  readonly progress: number;
  /** It has lost its address: nobody hears of it again. */
  readonly isCut: boolean;
}

const HANG_REASONS = ["no_boot_device", "firmware_setup", "kernel_panic", "install_failed", "post"] as const;
export type HangReason = (typeof HANG_REASONS)[number];

/** What goes on in the machine beyond its power. `until` is simulated time. */
export type Life =
  | { readonly is: "off" }
  | { readonly is: "post"; readonly until: number }
  | { readonly is: "booting"; readonly until: number }
  | {
      /** Asks the boot server; what it is told to boot runs until it ends by itself. */
      readonly is: "network_boot";
      /** Counts them. */
      readonly boot: number;
      readonly kernel: NetworkKernel | null;
      readonly screen: string;
    }
  | {
      readonly is: "installing";
      readonly until: number;
      readonly image: ImageSpec;
      readonly cloudInit: string | null;
      readonly token: string | null;
      readonly source: InstallSource;
      readonly fails: boolean;
    }
  | { readonly is: "running" }
  | { readonly is: "shutting_down"; readonly until: number; readonly next: "off" | "restart" }
  | { readonly is: "hung"; readonly why: HangReason };

/** Counts of what was really accepted and done, by which tests prove that nothing happened twice. */
export interface MachineEffects {
  readonly power_on_commands: number;
  readonly power_off_commands: number;
  readonly graceful_shutdown_commands: number;
  readonly graceful_restart_commands: number;
  readonly force_restart_commands: number;
  readonly power_cycle_commands: number;
  /** All of the above. */
  readonly resets: number;
  /** How often it really went on or off, whoever did it. */
  readonly power_changes: number;
  /** How often an operating system came up. */
  readonly boots: number;
  readonly installs_started: number;
  readonly installs: number;
  readonly installs_failed: number;
  readonly joins_started: number;
  readonly joins: number;
  readonly joins_failed: number;
  readonly media_inserts: number;
  readonly media_ejects: number;
  readonly boot_override_changes: number;
  readonly locator_changes: number;
  readonly reboots_from_inside: number;
  readonly ssh_commands: number;
  /** Of what those commands put into the background, to go on without them. */
  readonly background_processes: number;
  readonly crashes: number;
  readonly manager_restarts: number;
  readonly kubelet_restarts: number;
  readonly package_upgrades: number;
  readonly network_changes: number;
  readonly network_boots: number;
}

/** Sensors that say that something is not well. */
export const SENSOR_IDS = ["input_power", "inlet_temperature", "cpu_temperature", "fan_speed"] as const;
export type SensorId = (typeof SENSOR_IDS)[number];
export const AILING = ["Warning", "Critical"] as const;
/** Parts that can be not well, beside what sensors measure. */
export const PART_IDS = ["processor_0", "processor_1", "drive_0", "drive_1"] as const;
export type PartId = (typeof PART_IDS)[number];
export type Ailments = Readonly<Partial<Record<SensorId | PartId, (typeof AILING)[number]>>>;

export interface Kubelet {
  readonly cluster: string;
  readonly active: boolean;
}

export interface MachineState {
  readonly power: Power;
  readonly pending: readonly PendingChange[];
  readonly lie: Lie | null;
  readonly managerBackAt: number;
  readonly life: Life;
  /** Real time in milliseconds. */
  readonly lastResetTime: number;
  readonly os: InstalledSystem | null;
  /** Of the system that runs, or ran last. */
  readonly bootId: string | null;
  /** Simulated times: since when it runs, and when its kubelet was last heard of if it is silent now. */
  readonly runningSince: number;
  readonly kubeletSilentSince: number;
  readonly boot: BootOverride;
  readonly media: VirtualMedium | null;
  /** Absent in the states of machines that never had one. */
  readonly secondMedium?: VirtualMedium | null;
  readonly netboot: NetbootOrder | null;
  readonly locatorLit: boolean;
  /** How it is lit; absent: it blinks. */
  readonly locatorShows?: "Lit" | "Blinking";
  /** Absent in the states of machines that were never ill. */
  readonly ailments?: Ailments;
  readonly kubelet: Kubelet | null;
  readonly joining: { readonly cluster: string; readonly dueAt: number; readonly fails: boolean } | null;
  /** Written by whoever was signed in; gone with the next installation. */
  readonly files: Readonly<Record<string, string>>;
  /** What was last applied of the settings among the files; null is as delivered. */
  readonly network: Network | null;
  readonly log: readonly MachineLogEntry[];
  readonly effects: MachineEffects;
  /** Absent: as delivered. */
  readonly traits?: readonly Trait[];
}

const NO_EFFECTS: MachineEffects = {
  power_on_commands: 0,
  power_off_commands: 0,
  graceful_shutdown_commands: 0,
  graceful_restart_commands: 0,
  force_restart_commands: 0,
  power_cycle_commands: 0,
  resets: 0,
  power_changes: 0,
  boots: 0,
  installs_started: 0,
  installs: 0,
  installs_failed: 0,
  joins_started: 0,
  joins: 0,
  joins_failed: 0,
  media_inserts: 0,
  media_ejects: 0,
  boot_override_changes: 0,
  locator_changes: 0,
  reboots_from_inside: 0,
  ssh_commands: 0,
  background_processes: 0,
  crashes: 0,
  manager_restarts: 0,
  kubelet_restarts: 0,
  package_upgrades: 0,
  network_changes: 0,
  network_boots: 0,
};

export const NO_OVERRIDE: BootOverride = { enabled: "Disabled", target: "None", mode: "UEFI", httpUri: null };

/** As it was delivered: what the site says about it, running for a long time if it is on. */
export function freshState(spec: MachineSpec, factory: { image: ImageSpec | undefined; bootId: string }): MachineState {
  const { image, bootId } = factory;
  const on = spec.initialPower === "on";
  const os: InstalledSystem | null =
    image === undefined
      ? null
      : {
          image: image.ref,
          digest: image.digest,
          kubeletVersion: image.kubeletVersion,
          cloudInit: null,
          token: null,
          source: "factory",
          number: 0,
          installedAt: 0,
        };
  const running = on && os !== null;
  return {
    power: spec.initialPower,
    pending: [],
    lie: null,
    managerBackAt: 0,
    life: !on ? { is: "off" } : running ? { is: "running" } : { is: "hung", why: "no_boot_device" },
    lastResetTime: 0,
    os,
    bootId: running ? bootId : null,
    runningSince: 0,
    kubeletSilentSince: 0,
    boot: NO_OVERRIDE,
    media: null,
    netboot: null,
    locatorLit: false,
    kubelet: os !== null && spec.initialCluster !== null ? { cluster: spec.initialCluster, active: true } : null,
    joining: null,
    files: {},
    network: null,
    log: [],
    effects: NO_EFFECTS,
  };
}

/** As it was saved, possibly before some of these parts were thought of. */
export const savedState = (saved: MachineState): MachineState => ({
  ...saved,
  network: saved.network ?? null,
  effects: { ...NO_EFFECTS, ...saved.effects },
});

export const counted = (effects: MachineEffects, ...names: readonly (keyof MachineEffects)[]): MachineEffects => ({
  ...effects,
  // A state that was kept by an earlier simulator may lack what is counted since.
  ...Object.fromEntries(names.map((name) => [name, (effects[name] ?? 0) + 1])),
});

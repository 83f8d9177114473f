import type { PowerState } from "../../capabilities/power-control.ts";
import type { CauseCode } from "../../kernel/causes.ts";
import type { Json, Thing } from "../../kernel/lifecycle.ts";
import type { FirmwareDevice, RackFirmware } from "../rack-firmware/rack-firmware.ts";
import type { RackProfile } from "./profile.ts";

/** What leads a rack into maintenance: its discovery, `rack reprovision`, or an operator's request. */
export const TRIGGERS = ["ingestion", "reprovision", "on_demand"] as const;
export type Trigger = (typeof TRIGGERS)[number];

/** In the order in which they are carried out. */
export const ACTIVITIES = ["firmware_upgrade", "configure_nmx_cluster", "power_sequence"] as const;
export type ActivityKind = (typeof ACTIVITIES)[number];

const POWER_OPERATIONS = ["on", "off", "cycle"] as const;
export type PowerOperation = (typeof POWER_OPERATIONS)[number];

/** One activity with its configuration, as a request keeps it. */
export type Activity =
  | { readonly kind: "firmware_upgrade"; readonly firmware_version?: string; readonly components?: readonly string[] }
  | { readonly kind: "configure_nmx_cluster" }
  | { readonly kind: "power_sequence"; readonly operation?: PowerOperation };

/** All three lists empty: the whole rack. Otherwise an empty list means none of that kind. */
export type MaintenanceScope = {
  readonly machine_ids: readonly string[];
  readonly switch_ids: readonly string[];
  readonly power_shelf_ids: readonly string[];
};

/** What somebody asked of the rack, as it is kept: plain JSON, so that the whole of it goes into the history. */
export type RackRequest = {
  readonly id: string;
  readonly initiator: string;
  readonly requested_at: string;
  readonly reference?: string;
  readonly traceparent?: string;
  readonly scope: MaintenanceScope;
  /** Empty: all. */
  readonly activities: readonly Activity[];
  /** Assigned trays, and what they depend on, are worked on all the same, for this reason. */
  readonly include_assigned?: { readonly reason: string };
};

const REQUEST_OUTCOMES = ["completed", "failed", "superseded", "withdrawn", "expired"] as const;
export type EndedRackRequest = RackRequest & {
  readonly outcome: (typeof REQUEST_OUTCOMES)[number];
  readonly ended_at: string;
  readonly message: string | null;
};

/** Whether somebody uses the tray. unknown: it was not checked yet, or its cluster does not answer: it may be in use. */
export type Assigned = "yes" | "no" | "unknown";

export interface Tray {
  readonly id: string;
  readonly slot: string | null;
  /** Nothing of the rack touches it, nor waits for it. */
  readonly inMaas: boolean;
  /** Its host_reprovision lifecycle rests in `ready` and its BMC answers; or it is in MAAS. */
  readonly ready: boolean;
  readonly assigned: Assigned;
  /** Its host_reprovision state; null where it has none. */
  readonly reprovision: string | null;
  /** Its own firmware upgrade failed as often as it may. */
  readonly exhausted: boolean;
  /** A run that began a flash whose end nobody could read: the tray stays claimed by it. */
  readonly unprovenRun: string | null;
}

export interface RackSwitch {
  readonly id: string;
  readonly state: string;
  readonly trayIndex: number | null;
  /** Its operating system can be reached: address and credentials are on record. */
  readonly hasOs: boolean;
  readonly unprovenRun: string | null;
}

export interface RackShelf {
  readonly id: string;
  readonly state: string;
  readonly power: PowerState | null;
  readonly capacityWatts: number | null;
  readonly unprovenRun: string | null;
}

/** By kind of device: the versions that its components are to show. */
export type WantedVersions = {
  readonly [device in FirmwareDevice]: readonly {
    readonly component: string;
    readonly version: string;
    /** Parts of the device, as its BMC names them; empty: those of the component. */
    readonly targets: readonly string[];
  }[];
};

/** The devices that a maintenance works on, and those that it leaves out. A type and no interface, so that it is JSON to the compiler. */
export type WorkSet = {
  readonly machines: readonly string[];
  readonly switches: readonly string[];
  readonly shelves: readonly string[];
  /** Trays that depend on the switches and shelves: held as well, so that none of them comes into use meanwhile. */
  readonly keptUnassigned?: readonly string[];
  /** Trays that nobody may use when the claims are taken, nor as long as they are held: also those that others work on. */
  readonly unused?: readonly string[];
  readonly leftOut: readonly { readonly id: string; readonly why: string }[];
  /** The catalogue's record that is flashed, and the versions that devices show then; null: none is. */
  readonly firmware: { readonly id: string; readonly wanted: WantedVersions } | null;
  /** The fabric is configured, so that validation reads it. */
  readonly fabric: boolean;
  /** Who configures it, where that is not its switches. */
  readonly fabricVia?: "rack_manager";
  /** Devices were switched off on purpose, so that validation does not expect them to be on. */
  readonly isOff: boolean;
  /** What leads to it. Absent: a version that did not say so began it. */
  readonly trigger?: Trigger;
  /** Of a maintenance that nobody asked for by name: what it keeps to. Absent: it begins whatever others do. */
  readonly admission?: RackAdmission;
  /** How long the set keeps later work off its devices while it waits, in milliseconds; 0: not at all. */
  readonly barsForMs: number;
};

/** When a maintenance that nobody asked for by name may begin. A type and no interface, so that it is JSON to the compiler. */
export type RackAdmission = {
  /** The setting that says how many, and how many it says. */
  readonly limit: "rack.maintenance_at_once" | "rack.ingestion_at_once";
  readonly atOnce: number;
  /** So many failures keep it from beginning; 0: none do. */
  readonly stopAfter: number;
};

export interface RackFacts {
  /** A fingerprint of the devices and the profile that the rack was discovered with; null: never. */
  readonly topology: string | null;
  readonly workSet: WorkSet | null;
  /** It was validated once: an error that is cleared leads to ready, and not through discovery. */
  readonly hasValidated: boolean;
  /** A maintenance that nobody asked for by name has failed on it, and it was neither ready nor cleared since. */
  readonly failedByItself: boolean;
}

/** Where an error comes from, which decides what leads out of it. */
const ERROR_ORIGINS = ["discovery", "activity", "validation", "component"] as const;
export type ErrorOrigin = (typeof ERROR_ORIGINS)[number];

/** How far a maintenance is, in the words of the rack's nested wire states. */
export const RACK_PHASES = [
  "start",
  "wait_for_complete",
  "wait_for_fabric_status",
  "powering_off",
  "powering_on",
  "completed",
] as const;
export type RackPhase = (typeof RACK_PHASES)[number];

export interface Rack extends Thing {
  /** Null: it has none, or its name is not in the catalogue. */
  readonly profile: RackProfile | null;
  /** As the rack names it, also where there is no such profile. */
  readonly profileId: string | null;
  readonly trays: readonly Tray[];
  readonly switches: readonly RackSwitch[];
  readonly shelves: readonly RackShelf[];
  /** Of the rack's hardware type. */
  readonly defaultFirmware: RackFirmware | null;
  /** The one that the pending request names; null: it names none, or there is none of that id. */
  readonly requestedFirmware: RackFirmware | null;
  readonly maintenanceRequest: RackRequest | null;
  readonly reprovisionRequest: RackRequest | null;
  readonly deletedAt: Date | null;
  readonly facts: RackFacts;
  readonly state: {
    readonly name: string;
    /** While maintenance. */
    readonly trigger?: Trigger;
    /** While maintenance: the request that is carried out, without its lists of devices. */
    readonly request?: Json;
    /** While maintenance and validating: the run that works on the rack. */
    readonly run?: string;
    readonly activity?: ActivityKind | "completed";
    readonly phase?: RackPhase;
    /** Why it is in error: for people, for programs, and which part of its life it comes from. */
    readonly cause?: string;
    readonly failure?: { readonly code: CauseCode } | Json;
    readonly origin?: ErrorOrigin;
    readonly [carried: string]: Json | undefined;
  };
}

import type { CauseCode } from "../../kernel/causes.ts";
import type { FirmwareComponent, FirmwareDevice } from "../rack-firmware/rack-firmware.ts";
import type { WantedVersions } from "./rack.ts";

/**
 * What the stages of a rack's maintenance are given. All of it is worked out when the maintenance begins and frozen into its run: what
 * the catalogue or the rack becomes later changes nothing. Types and no interfaces, so that they are JSON to the compiler.
 */

/** The stage has nothing to do, and says why. */
export type Skipped = {
  readonly skip: string;
  /** Nobody asked for it: that is no news. */
  readonly notRequested?: true;
};

/** The stage cannot be done as it was asked for: it fails, and with it the maintenance. */
export type Refused = { readonly refuse: { readonly code: CauseCode; readonly message: string } };

export type StagePayload<P> = Skipped | Refused | P;

/** The kinds of things that are devices of a rack, and the words by which firmware records name them. */
export const DEVICE_KINDS = { compute: "machine", switch: "switch", power_shelf: "power_shelf" } as const satisfies {
  readonly [device in FirmwareDevice]: string;
};

/** A device that is not worked on, since an earlier flash of it is unproven; the stage fails with it. */
export type Unfit = { readonly kind: string; readonly id: string; readonly why: string };

/** Who does the work, where that is not each device by itself. Absent: the devices' own BMCs and systems. */
export type Through = { readonly via?: "rack_manager" };

export type FirmwarePlan = Through & {
  readonly firmware_id: string;
  /** How many devices are flashed at the same time. */
  readonly at_once: number;
  /** For one component of one device. */
  readonly deadline_seconds: number;
  /** The fabric is configured after it: switches wait for that before they are ready. */
  readonly awaits_fabric: boolean;
  readonly unfit: readonly Unfit[];
} & {
  readonly [device in FirmwareDevice]: {
    readonly devices: readonly string[];
    readonly components: readonly FirmwareComponent[];
  };
};

export type FabricPlan = Through & {
  readonly topology: string;
  readonly switches: readonly string[];
  /** Somebody named it: where the switches cannot do it, it fails. */
  readonly explicit: boolean;
};

export type PowerTier = {
  /** How many devices are switched at the same time. */
  readonly at_once: number;
  readonly tier: FirmwareDevice;
  readonly desired: "on" | "off";
  readonly devices: readonly string[];
};

/** By the stages of the workflow `rack_maintenance`. */
export type RackPayloads = {
  readonly firmware_upgrade: StagePayload<FirmwarePlan>;
  readonly configure_nmx_cluster: StagePayload<FabricPlan>;
  readonly power_off_compute: StagePayload<PowerTier>;
  readonly power_off_switches: StagePayload<PowerTier>;
  readonly power_on_shelves: StagePayload<PowerTier>;
  readonly power_on_switches: StagePayload<PowerTier>;
  readonly power_on_compute: StagePayload<PowerTier>;
};
export type MaintenanceStage = keyof RackPayloads;

export type DeviceCheck = {
  readonly devices: readonly { readonly kind: string; readonly id: string }[];
  readonly wanted: WantedVersions;
};
export type FabricCheck = Through & { readonly switches: readonly string[] };

/** By the stages of the workflow `rack_validation`. */
export type ValidationPayloads = {
  readonly validate_devices: StagePayload<DeviceCheck>;
  readonly validate_fabric: StagePayload<FabricCheck>;
};

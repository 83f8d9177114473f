import type { BmcTarget } from "./bmc-target.ts";
import type { CallContext } from "./call.ts";
import type { DeviceIdentity } from "./inventory.ts";

export interface MachineIdentity extends DeviceIdentity {
  readonly systemUuid: string | null;
  readonly macs: readonly string[];
}

const BOOT_PROGRESS = ["off", "starting", "booting", "running", "unknown"] as const;
export type BootProgress = (typeof BOOT_PROGRESS)[number];

/** As much of a boot as is seen from outside. */
export interface BootSeen {
  /** When the machine was last reset, in the BMC's own words: only good to be compared. Null where it does not tell. */
  readonly lastReset: string | null;
  readonly progress: BootProgress;
}

export interface FirmwareVersion {
  readonly name: string;
  readonly version: string;
}

/** Reading what a machine is and how far it is, through its BMC. Changes nothing on it. */
export interface ComputerSystem {
  identify(target: BmcTarget, call: CallContext): Promise<MachineIdentity>;
  readBoot(target: BmcTarget, call: CallContext): Promise<BootSeen>;
  readFirmware(target: BmcTarget, call: CallContext): Promise<readonly FirmwareVersion[]>;
}

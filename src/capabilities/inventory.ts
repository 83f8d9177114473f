import type { BmcTarget } from "./bmc-target.ts";
import type { CallContext } from "./call.ts";

/** Who a device says it is; null where it does not say. */
export interface DeviceIdentity {
  readonly serial: string | null;
  readonly vendor: string | null;
  readonly model: string | null;
  /** SHA-256 fingerprint of the certificate that the BMC showed; absent over plain HTTP. */
  readonly certificateFingerprint?: string;
}

export interface DeviceInventory {
  readonly identity: DeviceIdentity;
  readonly bmcFirmware: string | null;
  readonly powerSupplies: readonly PowerSupply[];
  /** Watts and volts that the shelf can give, when it says so. */
  readonly capacityWatts: number | null;
  readonly voltage: number | null;
}

export interface PowerSupply {
  readonly name: string;
  readonly serial: string | null;
  readonly firmware: string | null;
  readonly on: boolean | null;
  readonly health: "ok" | "warning" | "critical" | null;
}

/** Reading what a device is. Changes nothing on it. */
export interface Inventory {
  identify(target: BmcTarget, call: CallContext): Promise<DeviceIdentity>;
  readInventory(target: BmcTarget, call: CallContext): Promise<DeviceInventory>;
}

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
  /** Where it says that it is in its rack. Absent: devices of this kind do not say. */
  readonly place?: DevicePlace;
  /** Network ports that its BMC knows of, its own among them. Absent: devices of this kind do not say. */
  readonly interfaces?: readonly DeviceInterface[];
}

export interface DevicePlace {
  readonly slot: number | null;
  /** Among the devices of its kind in the rack. */
  readonly trayIndex: number | null;
}

export interface DeviceInterface {
  /** In lower case, with colons. */
  readonly mac: string;
  readonly address: string | null;
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

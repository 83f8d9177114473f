import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { PowerState } from "../../capabilities/power-control.ts";
import type { DeviceHealth, DeviceLogEntry } from "../../capabilities/sensors.ts";
import type { Thing } from "../../kernel/lifecycle.ts";

export interface Bmc {
  readonly mac: string;
  readonly address: string;
  readonly port: number;
  readonly scheme: BmcTarget["scheme"];
  readonly trust: BmcTarget["trust"]["mode"];
}

/** As it is kept: the time as text. */
export type KeptLogEntry = Omit<DeviceLogEntry, "at"> & { readonly at: string | null };

/** What is read from every device that has a BMC and is monitored through it. Every part is null until it has been read. */
export interface BmcDeviceFacts {
  readonly serial: string | null;
  readonly vendor: string | null;
  readonly model: string | null;
  readonly bmcFirmware: string | null;
  readonly certificateFingerprint: string | null;
  readonly powerState: PowerState | null;
  readonly health: DeviceHealth["status"] | null;
  readonly sensors: DeviceHealth["readings"];
  readonly observedAt: string | null;
  /** The latest entries of the device's own log, newest first. */
  readonly deviceLog: readonly KeptLogEntry[];
  readonly deviceLogReadAt: string | null;
}

/** A power shelf or a switch: a device of a rack that is made from an expected row, and monitored through its BMC. */
export interface BmcDevice extends Thing {
  readonly rackId: string | null;
  readonly bmc: Bmc;
  readonly facts: BmcDeviceFacts;
  readonly deletedAt: Date | null;
  /** The linked row of the expected inventory, which deletion detaches. */
  readonly expectedId: string | null;
}

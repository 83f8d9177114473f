import type { DeviceSurroundings } from "./managed-device.ts";
import type { PowerPhase } from "./power.ts";
import { type Meter, readMeter } from "./power-shelf-meter.ts";
import {
  NO_EFFECTS,
  PoweredDevice,
  type PoweredDeviceSpec,
  type PoweredState,
  poweredState,
} from "./powered-device.ts";

export const SHELF_LAYOUTS = ["liteon", "standard"] as const;
/** Which vendor's arrangement of Redfish resources the shelf shows. */
export type ShelfLayout = (typeof SHELF_LAYOUTS)[number];

export const CHASSIS_ID: Readonly<Record<ShelfLayout, string>> = { liteon: "powershelf", standard: "chassis" };

/** What a shelf is; follows from the site and the seed and never changes. */
export interface PowerShelfSpec extends PoweredDeviceSpec {
  readonly kind: "power_shelf";
  readonly layout: ShelfLayout;
  readonly supplies: readonly { readonly name: string; readonly serial: string }[];
  readonly capacityWatts: number;
}

export interface ShelfReading {
  /** The truth. */
  readonly power: PowerPhase;
  /** What the management controller claims; differs from the truth while it lies. */
  readonly reported: PowerPhase;
  readonly meter: Meter;
}

/** A power shelf: what is really on its output, and what its management controller says about it. */
export class PowerShelf extends PoweredDevice<PowerShelfSpec, PoweredState> {
  protected readonly registry = "PowerShelf";

  constructor(spec: PowerShelfSpec, surroundings: DeviceSurroundings) {
    super(spec, surroundings, { ...poweredState(spec.initialPower), effects: NO_EFFECTS });
  }

  read(): ShelfReading {
    const { clock, seeded } = this.surroundings;
    const meter = readMeter({ spec: this.spec, on: this.isOn, seeded, realNow: clock.realNow() });
    return { ...this.readPower(), meter };
  }
}

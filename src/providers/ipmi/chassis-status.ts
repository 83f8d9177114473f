import type { PowerState } from "../../capabilities/power-control.ts";
import type { Ailment, Health } from "../../capabilities/vitals.ts";
import type { IpmiRequest } from "./client.ts";

const CHASSIS = 0x00;

/** Get Chassis Status (28.2): current power state, last power event, miscellaneous state. */
export const GET_CHASSIS_STATUS: IpmiRequest = {
  netFn: CHASSIS,
  command: 0x01,
  what: "Get Chassis Status",
  answers: 3,
};

/** IPMI knows on and off; what lies between, it does not tell. */
export const powerOf = ([current = 0]: readonly number[]): Extract<PowerState, "on" | "off"> =>
  (current & 0x01) === 0 ? "off" : "on";

const FAULTS: readonly (Ailment & { readonly byte: number; readonly bit: number })[] = [
  { byte: 0, bit: 0x02, name: "power overload", health: "critical" },
  { byte: 0, bit: 0x08, name: "power fault", health: "critical" },
  { byte: 0, bit: 0x10, name: "power control fault", health: "critical" },
  { byte: 2, bit: 0x08, name: "cooling or fan fault", health: "critical" },
  { byte: 0, bit: 0x04, name: "power interlock: a panel is open", health: "warning" },
  { byte: 2, bit: 0x04, name: "drive fault", health: "warning" },
];

/** The worst first. */
export const ailmentsOf = (status: readonly number[]): readonly Ailment[] =>
  FAULTS.filter(({ byte, bit }) => ((status[byte] ?? 0) & bit) !== 0).map(({ name, health }) => ({ name, health }));

export const healthOf = (status: readonly number[]): Exclude<Health, "unknown"> =>
  ailmentsOf(status)[0]?.health ?? "ok";

const CONTROLS = { off: 0x00, on: 0x01, cycle: 0x02, reset: 0x03, soft: 0x05 } as const;
export type ChassisControl = keyof typeof CONTROLS;

/** Chassis Control (28.3). */
export const chassisControl = (wish: ChassisControl): IpmiRequest => ({
  netFn: CHASSIS,
  command: 0x02,
  data: [CONTROLS[wish]],
  what: `Chassis Control ${wish}`,
  isCommand: true,
});

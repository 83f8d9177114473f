import type { BmcTarget } from "./bmc-target.ts";
import type { CallContext } from "./call.ts";

export const POWER_STATES = ["on", "off", "powering_on", "powering_off", "unknown"] as const;
export type PowerState = (typeof POWER_STATES)[number];

/**
 * Power control of one machine, switch or shelf.
 *
 * Every call is idempotent: asking for the state the device is already in succeeds.
 * Calls return once the BMC has accepted the request; use `readPower` to see it take effect.
 *
 * @throws StepFailure "retry" when the BMC cannot be reached or is busy, "fail" when it refuses for good.
 */
export interface PowerControl {
  readPower(target: BmcTarget, call: CallContext): Promise<PowerState>;
  setPower(target: BmcTarget, desired: "on" | "off", call: CallContext): Promise<void>;
}

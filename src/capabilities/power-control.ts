import type { BmcTarget } from "./bmc-target.ts";
import type { CallContext } from "./call.ts";

export const POWER_STATES = ["on", "off", "powering_on", "powering_off", "unknown"] as const;
export type PowerState = (typeof POWER_STATES)[number];

/** When the device accepted a command for the state that is asked for now. */
export interface Told {
  readonly at: Date;
}

export interface PowerCommanded {
  /** Whether a command was sent and accepted now; else there was no need, or an earlier one is still given its time. */
  readonly commanded: boolean;
}

/**
 * Power control of one machine, switch or shelf.
 *
 * Every call is idempotent: asking for the state the device is already in succeeds.
 * Calls return once the BMC has accepted the request; use `readPower` to see it take effect.
 *
 * A device may take a while to show that it obeys, and shall not hear the same command again meanwhile. Whoever keeps when it was
 * told, and hands it in as `told`, makes that hold also when another process carries on. What nothing can rule out is that a
 * process ends between the command and the keeping, or before the answer came: the next one reads the state first, and a device
 * that shows nothing yet hears the command twice, which is harmless, since it asks for a state and not for a change.
 *
 * @throws StepFailure "retry" when the BMC cannot be reached or is busy, "fail" when it refuses for good.
 */
export interface PowerControl {
  readPower(target: BmcTarget, call: CallContext): Promise<PowerState>;
  setPower(target: BmcTarget, desired: "on" | "off", call: CallContext, told?: Told): Promise<PowerCommanded>;
}

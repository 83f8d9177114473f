import type { BmcTarget } from "./bmc-target.ts";
import type { CallContext } from "./call.ts";

/** graceful: the operating system is asked to go down first. forced: at once, whatever runs. */
export const RESET_MODES = ["graceful", "forced"] as const;
export type ResetMode = (typeof RESET_MODES)[number];

/**
 * Restarting a machine through its BMC.
 *
 * Unlike setting the power this cannot be idempotent: each call that is accepted is one more restart. Whoever calls it notes the
 * boot first (`ComputerSystem.readBoot`, or the boot id over SSH) and calls again only while that boot is seen to be still there.
 * A machine that is off is switched on, since that is the state that a restart leads to.
 *
 * Returns once the BMC has accepted the request. Asked gracefully, a technology that has no such restart has the system go down,
 * and no more: whoever asks switches on a machine that they then see off (`PowerControl.setPower`).
 *
 * @throws StepFailure "retry" when the BMC cannot be reached or is busy, "fail" when it offers no such restart.
 */
export interface Reset {
  resetPower(target: BmcTarget, mode: ResetMode, call: CallContext): Promise<void>;
}

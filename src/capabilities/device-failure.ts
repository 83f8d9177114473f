import { type Disposition, StepFailure } from "../kernel/errors.ts";

/**
 * Why a device could not be used, for those who must tell one cause from another (the explorer shows it per row).
 *
 * `unreachable` no answer at all · `busy` answered, but not now · `credentials` the sign-in or the account was refused ·
 * `certificate` the device did not prove who it is · `protocol` the answer makes no sense to us · `refused` understood, and declined.
 */
const DEVICE_FAILURE_REASONS = ["unreachable", "busy", "credentials", "certificate", "protocol", "refused"] as const;
export type DeviceFailureReason = (typeof DEVICE_FAILURE_REASONS)[number];

/** Work on a device failed, and the device (or the way to it) is why. */
export class DeviceFailure extends StepFailure {
  readonly reason: DeviceFailureReason;
  /** What the device answered, where it answered with a status at all. */
  readonly status: number | undefined;

  constructor(
    disposition: Disposition,
    reason: DeviceFailureReason,
    message: string,
    options: { retryAfterMs?: number; cause?: unknown; status?: number } = {},
  ) {
    super(disposition, message, options);
    this.name = "DeviceFailure";
    this.reason = reason;
    this.status = options.status;
  }
}

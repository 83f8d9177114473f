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
  /** What it said to that, for those who go by it; where it was not asked for, it stands in the message alone. */
  readonly said: string | undefined;

  constructor(
    disposition: Disposition,
    reason: DeviceFailureReason,
    message: string,
    options: { retryAfterMs?: number; cause?: unknown; status?: number; said?: string } = {},
  ) {
    super(disposition, message, options);
    this.name = "DeviceFailure";
    this.reason = reason;
    this.status = options.status;
    this.said = options.said;
  }
}

/** Nobody answered, or not now. */
export const isSilence = (error: unknown): error is DeviceFailure =>
  error instanceof DeviceFailure && (error.reason === "unreachable" || error.reason === "busy");

import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { AppError, StepFailure } from "../../kernel/errors.ts";
import type { RunContext } from "./run-context.ts";

export const isUnreachable = (error: unknown): boolean =>
  error instanceof DeviceFailure && error.reason === "unreachable";

/** Asked once more, the device may well tell: it does not answer, not now, or in words that make no sense. */
export const mayPass = (error: unknown): boolean =>
  error instanceof DeviceFailure &&
  error.disposition === "retry" &&
  (error.reason === "unreachable" || error.reason === "busy" || error.reason === "protocol");

/** Whether a device that answered an action so may have obeyed all the same: then only asking it tells. */
export function mayHaveObeyed(error: unknown): boolean {
  if (!(error instanceof DeviceFailure)) return false;
  const { reason, status } = error;
  switch (reason) {
    case "unreachable":
      return true;
    case "protocol": // "somewhere else" and "no such thing" are plain answers; half a page may follow upon the deed
      return status === undefined || status < 300 || status >= 500;
    case "busy": // 503 says "not now"; whoever breaks down over it, or gives up on those behind, may have passed it on before
      return status !== undefined && status >= 500 && status !== 503;
    default:
      return false;
  }
}

/**
 * The run is canceled, we are being stopped, have lost the lease, or have no database: nothing of that is a failed attempt, and
 * the next look goes on.
 */
export function isNotOfTheStep(error: unknown, { call }: Pick<RunContext, "call">): boolean {
  if (error instanceof AppError && (error.kind === "unavailable" || error.kind === "deadline_exceeded")) return true;
  return call.signal.aborted && !(call.signal.reason instanceof StepFailure);
}

/** Nothing is on record, or nothing that can be read, to sign in to a machine with. */
export class NoCredentials extends StepFailure {
  constructor(message: string) {
    super("fail", message);
    this.name = "NoCredentials";
  }
}

export const lacksCredentials = (error: unknown): boolean =>
  error instanceof NoCredentials || (error instanceof DeviceFailure && error.reason === "credentials");

/** Nobody at the device has heard what was wanted: we are not let in, or do not take it for the one that we know. */
export const isShutOut = (error: unknown): boolean =>
  lacksCredentials(error) || (error instanceof DeviceFailure && error.reason === "certificate");

/** HTTP 403, and IPMI's "insufficient privilege level". */
const FORBIDDEN: readonly (number | undefined)[] = [403, 0xd4];

/** We were let in, and this one thing is not for our account. */
export const isForbidden = (error: unknown): boolean =>
  error instanceof DeviceFailure && error.reason === "credentials" && FORBIDDEN.includes(error.status);

/** The attempt is over, and it is still open whether the device obeyed: the next one goes by the same evidence. */
export class StillOpen extends StepFailure {
  constructor(message: string) {
    super("retry", message);
    this.name = "StillOpen";
  }
}

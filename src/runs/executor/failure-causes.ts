import { DeviceFailure, isKeptOut } from "../../capabilities/device-failure.ts";
import type { Cause, CauseCode, FactsOf } from "../../kernel/causes.ts";
import { AppError, StepFailure } from "../../kernel/errors.ts";
import type { RunContext } from "./run-context.ts";

/** Asked once more, the device may well tell: it does not answer, not now, or in words that make no sense. */
export const mayPass = (error: unknown): boolean =>
  error instanceof DeviceFailure &&
  error.disposition === "retry" &&
  (error.family === "silent" || error.family === "busy" || error.family === "odd");

/** Whether a device that answered an action so may have obeyed all the same: then only asking it tells. */
export function mayHaveObeyed(error: unknown): boolean {
  if (!(error instanceof DeviceFailure)) return false;
  const { family, status } = error;
  switch (family) {
    case "silent":
      return true;
    case "odd": // "somewhere else" and "no such thing" are plain answers; half a page may follow upon the deed
      return status === undefined || status < 300 || status >= 500;
    case "busy": // 503 says "not now"; whoever breaks down over it, or gives up on those behind, may have passed it on before
      return status !== undefined && status >= 500 && status !== 503;
    default:
      return false;
  }
}

/**
 * The run is canceled, we are being stopped, have lost the lease, or have no database: nothing of that is a failed attempt, and
 * the next pass goes on.
 */
export function isNotOfTheStep(error: unknown, { call }: Pick<RunContext, "call">): boolean {
  if (error instanceof AppError && (error.kind === "unavailable" || error.kind === "deadline_exceeded")) return true;
  return call.signal.aborted && !(call.signal.reason instanceof StepFailure);
}

/** Nothing usable is on record to sign in with, or the device rejects it. */
export const lacksCredentials = (error: unknown): boolean =>
  (error instanceof StepFailure &&
    (error.code === "credentials_missing" || error.code === "credentials_not_for_this_address")) ||
  isKeptOut(error);

/** Nobody at the device has heard what was wanted: we are not let in, or do not take it for the one that we know. */
export const isShutOut = (error: unknown): boolean =>
  lacksCredentials(error) || (error instanceof DeviceFailure && error.family === "unproven");

/** The attempt is over, and it is still open whether the device obeyed: the next one goes by the same evidence. */
export class StillOpen extends StepFailure {
  constructor({ code, facts = {} }: Cause, message: string) {
    super(code, message, { disposition: "retry", facts: facts as FactsOf<CauseCode> });
    this.name = "StillOpen";
  }
}

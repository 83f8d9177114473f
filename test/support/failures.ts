import { StepFailure } from "../../src/kernel/errors.ts";

/** Failures of which a test wants no more than what follows them. */
export const retryable = (message: string) => new StepFailure("not_done_in_time", message);
export const final = (message: string) => new StepFailure("invalid_input", message);
export const forPerson = (message: string) => new StepFailure("net_unclear", message);

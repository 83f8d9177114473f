import type { Peer } from "../../kernel/causes.ts";
import { type AppError, StepFailure } from "../../kernel/errors.ts";
import { NotForThisAddress } from "./secrets.ts";

/** Why nobody can sign in: there is nothing usable on record, or it was given for another address. */
export function noCredentials(error: AppError, facts: { readonly at: Peer; readonly name?: string }): StepFailure {
  const { message } = error;
  if (!(error instanceof NotForThisAddress)) return new StepFailure("credentials_missing", message, { facts });
  const { givenFor: expected, wantedAt: shown } = error;
  return new StepFailure("credentials_not_for_this_address", message, { facts: { ...facts, expected, shown } });
}

import { AppError } from "../../kernel/errors.ts";
import { isPrintable } from "../../kernel/printable.ts";
import type { Caller } from "./caller.ts";

const LONGEST_REFERENCE = 1_024;

/** Who asked and why, as one line; an empty reference counts as absent. */
export function describeInitiator(user: string | null, reference: string | undefined): string {
  if (user && reference) return `${user} (${reference})`;
  return user || reference || "admin-cli";
}

export function parseReference(reference: string | undefined): string | undefined {
  if (reference !== undefined && reference.length > LONGEST_REFERENCE) {
    throw new AppError("invalid_argument", `reference: at most ${LONGEST_REFERENCE} characters`, {
      field: "reference",
    });
  }
  if (reference !== undefined && !isPrintable(reference)) {
    throw new AppError(
      "invalid_argument",
      "reference: must be printable, so without control, invisible or direction characters",
      { field: "reference" },
    );
  }
  return reference;
}

/** The name under which a caller's doings are journaled. */
export const actorOf = (caller: Caller): string => caller.name ?? "admin-cli";

/** Who did it and from where, for the journal. */
export const doneBy = (caller: Caller) => ({ actor: actorOf(caller), address: caller.address });

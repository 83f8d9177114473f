import { AppError } from "../../kernel/errors.ts";

const LONGEST_TEXT = 256;

/** A user name, a password, a serial: neither empty nor endless. Says nothing of what was given, since it may be a secret. */
export function checkRequiredText(text: string, field: string): void {
  if (text === "") throw new AppError("invalid_argument", `${field}: is required`, { field });
  if (text.length > LONGEST_TEXT)
    throw new AppError("invalid_argument", `${field}: at most ${LONGEST_TEXT} characters`, { field });
}

import type { Cause } from "../../kernel/causes.ts";
import { AppError } from "../../kernel/errors.ts";

const FIELD = "fingerprint";

/** SHA-256 of a certificate in the spelling in which it is kept: `AA:BB:…`. With or without colons, in any case, as tools print it. */
export function parseFingerprint(text: string): string {
  const digits = text
    .trim()
    .replace(/^sha-?256[:=]/i, "")
    .replaceAll(":", "")
    .toUpperCase();
  if (/^[0-9A-F]{64}$/.test(digits)) return digits.match(/../g)?.join(":") ?? digits;
  const why = "must be the SHA-256 fingerprint of the certificate: 64 hexadecimal digits, with or without colons";
  throw new AppError("invalid_argument", `${FIELD}: ${why}`, { field: FIELD });
}

/**
 * Refuses every fingerprint but the one that the BMC was last seen to show instead of the pinned one: a slip of the pen would lock us
 * out, or let another in.
 */
export function checkShown(
  fingerprint: string,
  { cause, pinned }: { readonly cause: Cause | null | undefined; readonly pinned: string | null },
): void {
  const shown = cause?.code === "certificate_changed" ? cause.facts?.shown : undefined;
  const accepted = typeof shown === "string" ? parseFingerprint(shown) : pinned;
  if (fingerprint === accepted) return;
  const why =
    typeof shown === "string"
      ? `the BMC shows ${shown}, not ${fingerprint}`
      : "the BMC was not seen to show another certificate than the pinned one";
  throw new AppError("failed_precondition", `${FIELD}: ${why}`, { field: FIELD });
}

/** There is something to accept only where one certificate is pinned. */
export function checkPins(trust: string, what: string): void {
  if (trust === "pin") return;
  throw new AppError("failed_precondition", `${what} pins no certificate: its TLS trust is ${trust}`, { field: FIELD });
}

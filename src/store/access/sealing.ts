import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import type { SecretKey } from "./secret-key-file.ts";
import { holdsReference } from "./stored-reference.ts";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
export const SIGNATURE_BYTES = 16;

export interface SecretRow {
  readonly name: string;
  readonly key_id: string;
  readonly nonce: Buffer;
  readonly ciphertext: Buffer;
}

/**
 * A reference is sealed as one: a replica of an earlier version, which would send the reference itself to a device, cannot open it.
 */
const contextOf = (name: string, isReference: boolean): Buffer =>
  Buffer.from(isReference ? `${name}\0reference` : name);

/** The name is authenticated along: a ciphertext moved to another row does not open there. */
export function seal(name: string, plaintext: string, key: SecretKey): Pick<SecretRow, "nonce" | "ciphertext"> {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key.key, nonce, { authTagLength: TAG_BYTES }).setAAD(
    contextOf(name, holdsReference(name, plaintext)),
  );
  return { nonce, ciphertext: Buffer.concat([cipher.update(plaintext, "utf8"), cipher.final(), cipher.getAuthTag()]) };
}

export function open(row: SecretRow, key: SecretKey): string | AppError {
  const plaintext = decrypt(row, key, false) ?? decrypt(row, key, true);
  if (plaintext !== undefined) return plaintext;
  return new AppError("internal", `secret ${row.name} is damaged: its row was changed outside Millwright`, {
    next: "store the secret again",
  });
}

/** Undefined where it does not open. Without the cause: nothing of what was being opened may travel along. */
function decrypt({ name, nonce, ciphertext }: SecretRow, key: SecretKey, isReference: boolean): string | undefined {
  try {
    const decipher = createDecipheriv(CIPHER, key.key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(contextOf(name, isReference)).setAuthTag(ciphertext.subarray(-TAG_BYTES));
    return Buffer.concat([decipher.update(ciphertext.subarray(0, -TAG_BYTES)), decipher.final()]).toString("utf8");
  } catch {
    return undefined;
  }
}

/** The key that encrypts signs nothing itself: each purpose has one that is derived from it. */
export function signatureOf({ key }: SecretKey, purpose: string, text: string): Buffer {
  const derived = Buffer.from(hkdfSync("sha256", key, "", `millwright signature: ${purpose}`, 32));
  return createHmac("sha256", derived).update(text).digest().subarray(0, SIGNATURE_BYTES);
}

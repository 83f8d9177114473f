import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { AppError } from "../../kernel/errors.ts";
import type { SecretKey } from "./secret-key-file.ts";

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

/** The name is authenticated along: a ciphertext moved to another row does not open there. */
export function seal(name: string, plaintext: string, key: SecretKey): Pick<SecretRow, "nonce" | "ciphertext"> {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key.key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(name));
  return { nonce, ciphertext: Buffer.concat([cipher.update(plaintext, "utf8"), cipher.final(), cipher.getAuthTag()]) };
}

export function open({ name, nonce, ciphertext }: SecretRow, key: SecretKey): string | AppError {
  try {
    const decipher = createDecipheriv(CIPHER, key.key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(name));
    decipher.setAuthTag(ciphertext.subarray(-TAG_BYTES));
    return Buffer.concat([decipher.update(ciphertext.subarray(0, -TAG_BYTES)), decipher.final()]).toString("utf8");
  } catch {
    // Without the cause: nothing of what was being opened may travel along.
    return new AppError("internal", `secret ${name} is damaged: its row was changed outside Millwright`, {
      next: "store the secret again",
    });
  }
}

/** The key that encrypts signs nothing itself: each purpose has one that is derived from it. */
export function signatureOf({ key }: SecretKey, purpose: string, text: string): Buffer {
  const derived = Buffer.from(hkdfSync("sha256", key, "", `millwright signature: ${purpose}`, 32));
  return createHmac("sha256", derived).update(text).digest().subarray(0, SIGNATURE_BYTES);
}

import { createHash } from "node:crypto";

/** As `ssh-keygen -l` prints it, which is what people compare at the machine. A text that is one already stays as it is. */
export function hostKeyFingerprint(key: string): string {
  const [, base64] = key.trim().split(/\s+/);
  if (base64 === undefined) return key;
  return `SHA256:${createHash("sha256").update(Buffer.from(base64, "base64")).digest("base64").replace(/=+$/, "")}`;
}

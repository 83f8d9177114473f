import { createHash } from "node:crypto";

/** As `ssh-keygen -l` prints it. */
const FINGERPRINT = /^SHA256:([A-Za-z0-9+/]{43})=?$/;

/** A host key may be given by its fingerprint, which is what people compare at the machine. */
export const isFingerprint = (text: string): boolean => FINGERPRINT.test(text.trim());

const KEY_LINE = /^([a-z0-9@.-]+) ([A-Za-z0-9+/]+=*)( .*)?$/;

/**
 * Whether a text is a whole key in the spelling of known_hosts: its bytes begin with its type, and all their parts are there. One that was cut
 * off while it was copied would be shown by no machine, and call every honest one an impostor.
 */
export function isHostKey(text: string): boolean {
  const [, type, encoded = ""] = KEY_LINE.exec(text) ?? [];
  const parts = partsOf(Buffer.from(encoded, "base64"));
  return type !== undefined && parts !== undefined && parts.length > 1 && parts[0]?.toString("latin1") === type;
}

/** Each behind its length; undefined where one is cut off. */
function partsOf(blob: Buffer): Buffer[] | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; at < blob.length; ) {
    const end = at + 4 > blob.length ? Number.POSITIVE_INFINITY : at + 4 + blob.readUInt32BE(at);
    if (end > blob.length) return undefined;
    parts.push(blob.subarray(at + 4, end));
    at = end;
  }
  return parts;
}

/** Short enough to be compared by people. A text is a key in the spelling of known_hosts, or a fingerprint already. */
export function fingerprintOf(key: string | Buffer): string {
  if (typeof key !== "string") return fingerprintOfBlob(key);
  const given = FINGERPRINT.exec(key.trim())?.[1];
  return given === undefined
    ? fingerprintOfBlob(Buffer.from(key.trim().split(/\s+/)[1] ?? "", "base64"))
    : `SHA256:${given}`;
}

const fingerprintOfBlob = (blob: Buffer): string =>
  `SHA256:${createHash("sha256").update(blob).digest("base64").replace(/=+$/, "")}`;

/** Whether two texts mean the same key, whichever way each is spelled; comments behind a key do not matter. */
export function isSameHostKey(one: string, other: string): boolean {
  const keyOf = (text: string) => text.trim().split(/\s+/).slice(0, 2).join(" ");
  if (keyOf(one) === keyOf(other)) return true;
  return (isFingerprint(one) || isFingerprint(other)) && fingerprintOf(one) === fingerprintOf(other);
}

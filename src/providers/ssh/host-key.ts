import { createHash, timingSafeEqual } from "node:crypto";

/** A host key as it comes over the wire, in the spelling of known_hosts: type and key. */
export function describeHostKey(blob: Buffer): string {
  const length = blob.length >= 4 ? blob.readUInt32BE(0) : 0;
  const type = blob.subarray(4, 4 + length).toString("latin1");
  return `${/^[\x21-\x7e]{1,64}$/.test(type) ? type : "unknown"} ${blob.toString("base64")}`;
}

/** Whether the shown key is the pinned one; comments after it do not matter. */
export function isPinnedKey(pinned: string, shown: Buffer): boolean {
  const [, base64 = ""] = pinned.trim().split(/\s+/);
  const expected = Buffer.from(base64, "base64");
  return expected.length > 0 && expected.length === shown.length && timingSafeEqual(expected, shown);
}

/** Short enough to be compared by people, in the form that `ssh-keygen -l` prints. */
export function fingerprintOf(key: string | Buffer): string {
  const blob = typeof key === "string" ? Buffer.from(key.trim().split(/\s+/)[1] ?? "", "base64") : key;
  return `SHA256:${createHash("sha256").update(blob).digest("base64").replace(/=+$/, "")}`;
}

import { timingSafeEqual } from "node:crypto";
import { fingerprintOf, isFingerprint } from "../../capabilities/host-key.ts";

/** A host key as it comes over the wire, in the spelling of known_hosts: type and key. */
export function describeHostKey(blob: Buffer): string {
  const length = blob.length >= 4 ? blob.readUInt32BE(0) : 0;
  const type = blob.subarray(4, 4 + length).toString("latin1");
  return `${/^[\x21-\x7e]{1,64}$/.test(type) ? type : "unknown"} ${blob.toString("base64")}`;
}

/** Whether the shown key is the pinned one, which may be given by its fingerprint; comments after it do not matter. */
export function isPinnedKey(pinned: string, shown: Buffer): boolean {
  if (isFingerprint(pinned)) return fingerprintOf(pinned) === fingerprintOf(shown);
  const [, base64 = ""] = pinned.trim().split(/\s+/);
  const expected = Buffer.from(base64, "base64");
  return expected.length > 0 && expected.length === shown.length && timingSafeEqual(expected, shown);
}

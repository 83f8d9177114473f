import { expect, test } from "vitest";
import { fingerprintOf, isFingerprint, isHostKey, isSameHostKey } from "./host-key.ts";

/** Both as ssh-keygen made and printed them. */
const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ+9C3XQ0gDXZg5iuIIdaTTlZ0L59WskL9PyoC0BpClv";
const PRINTED = "SHA256:UIxw3LBC8mq83crfBk/oYw1KzT3u15s0gWViaKwP+5M";

test("a fingerprint is what ssh-keygen prints, of a key with or without a comment, and of itself", () => {
  for (const text of [KEY, `${KEY} root@m-1`, PRINTED, `${PRINTED}=`]) expect(fingerprintOf(text)).toBe(PRINTED);
});

test("a key is the same by its text and by its fingerprint, and by nothing else", () => {
  expect(isSameHostKey(KEY, `${KEY} root@m-1`)).toBe(true);
  expect(isSameHostKey(PRINTED, KEY)).toBe(true);
  expect(isSameHostKey(KEY, PRINTED)).toBe(true);
  expect(isSameHostKey(KEY, `SHA256:${"A".repeat(43)}`)).toBe(false);
  // Neither has a key in it: that makes them no two of a kind.
  expect(isSameHostKey("one", "other")).toBe(false);
});

test.each(["SHA256:", "SHA256:abc", "MD5:00:11", KEY, ""])("%j is no fingerprint", (text) => {
  expect(isFingerprint(text)).toBe(false);
});

test("a whole key is one, of whichever type, and one that was cut off or goes by another type's name is not", () => {
  const other =
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEhRvvPXyKpVGeqI7LhGvxDQcKjKwBbQRrOVH9tgvrksmpYvjiu2L99RtTwHdMy/kV/gW6lMPZ9Xatr5RRPgpFs=";
  for (const key of [KEY, `${KEY} root@m-1`, other]) expect(isHostKey(key)).toBe(true);
  for (let length = 0; length < KEY.length; length += 1) expect(isHostKey(KEY.slice(0, length))).toBe(false);
  for (const text of [KEY.replace("ssh-ed25519", "ssh-rsa"), `m-1 ${KEY}`, "ssh-ed25519 AAAA", PRINTED])
    expect(isHostKey(text)).toBe(false);
});

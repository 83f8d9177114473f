import { expect, test } from "vitest";
import { fingerprintOf, isFingerprint, isSameHostKey } from "./host-key.ts";

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

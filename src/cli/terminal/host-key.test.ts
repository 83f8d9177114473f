import { expect, test } from "vitest";
import { hostKeyFingerprint } from "./host-key.ts";

test("a host key is shown as ssh-keygen prints it, and a fingerprint as it is", () => {
  const printed = "SHA256:UIxw3LBC8mq83crfBk/oYw1KzT3u15s0gWViaKwP+5M";
  const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ+9C3XQ0gDXZg5iuIIdaTTlZ0L59WskL9PyoC0BpClv";
  expect([hostKeyFingerprint(key), hostKeyFingerprint(`${key} root@m-1`), hostKeyFingerprint(printed)]).toEqual([
    printed,
    printed,
    printed,
  ]);
});

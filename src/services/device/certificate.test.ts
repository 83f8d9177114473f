import { describe, expect, test } from "vitest";
import { checkPins, checkShown, parseFingerprint } from "./certificate.ts";

const of = (digit: string) => Array.from({ length: 32 }, () => `${digit}${digit}`).join(":");
const [pinned, shown, other] = [of("A"), of("B"), of("C")];
const changed = { code: "certificate_changed", facts: { shown } } as const;
const REFUSED = expect.objectContaining({ kind: "failed_precondition", detail: { field: "fingerprint" } });

describe("the certificate that takes the place of a pinned one", () => {
  test("is the one that the BMC was seen to show, and no other", () => {
    expect(() => checkShown(shown, { cause: changed, pinned })).not.toThrow();
    for (const wrong of [other, pinned]) expect(() => checkShown(wrong, { cause: changed, pinned })).toThrow(REFUSED);
    expect(() => checkShown(other, { cause: changed, pinned })).toThrow(`the BMC shows ${shown}, not ${other}`);
  });

  test("is none where the BMC was not seen to show another; the pinned one again changes nothing", () => {
    for (const cause of [
      null,
      undefined,
      { code: "unreachable", facts: { shown } },
      { code: "certificate_changed" },
    ] as const)
      expect(() => checkShown(shown, { cause: cause as never, pinned })).toThrow(REFUSED);
    expect(() => checkShown(pinned, { cause: null, pinned })).not.toThrow();
    expect(() => checkShown(shown, { cause: null, pinned: null })).toThrow(REFUSED);
  });

  test("is of no use where none is pinned", () => {
    expect(() => checkPins("pin", "machine m-1")).not.toThrow();
    expect(() => checkPins("off", "machine m-1")).toThrow("machine m-1 pins no certificate: its TLS trust is off");
  });
});

test("a fingerprint is read as tools print it, and kept in one spelling", () => {
  const digits = "b".repeat(64);
  for (const text of [digits, digits.toUpperCase(), shown, ` sha256:${digits} `, `SHA-256=${shown}`])
    expect(parseFingerprint(text)).toBe(shown);
  for (const text of ["", digits.slice(1), `${digits}0`, "g".repeat(64), "SHA256:abc"])
    expect(() => parseFingerprint(text)).toThrow("64 hexadecimal digits");
});

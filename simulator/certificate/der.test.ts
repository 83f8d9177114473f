import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bitString, boolean, explicit, integer, objectIdentifier, octetString, sequence, time } from "./der.ts";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

describe("DER", () => {
  test.each([
    ["a true boolean", boolean(true), "0101ff"],
    ["zero", integer(Uint8Array.of(0)), "020100"],
    ["a number whose top bit is set", integer(Uint8Array.of(0x80)), "02020080"],
    ["a number with zeros in front", integer(Uint8Array.of(0, 0, 5)), "020105"],
    ["an identifier with arcs above 127", objectIdentifier("1.2.840.10045.4.3.2"), "06082a8648ce3d040302"],
    ["a bit string with unused bits", bitString(Uint8Array.of(0x84), 2), "03020284"],
    ["an explicit tag", explicit(0, integer(Uint8Array.of(2))), "a003020102"],
    ["an empty sequence", sequence(), "3000"],
    ["a year before 2050", time(new Date("2049-12-31T23:59:59.123Z")), `170d${hex(Buffer.from("491231235959Z"))}`],
    ["a year from 2050 on", time(new Date("2050-01-01T00:00:00Z")), `180f${hex(Buffer.from("20500101000000Z"))}`],
  ])("%s is encoded as X.690 says", (_what, encoded, expected) => {
    expect(hex(encoded)).toBe(expected);
  });

  test("lengths are as short as possible, and true, for contents of any size", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 70_000 }), (size) => {
        const encoded = octetString(new Uint8Array(size));
        const first = encoded[1] ?? 0;
        const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
        const length = first < 0x80 ? first : Number.parseInt(hex(encoded.subarray(2, 2 + lengthBytes)), 16);
        expect(length).toBe(size);
        expect(encoded.length).toBe(2 + lengthBytes + size);
        expect(lengthBytes).toBe(size < 0x80 ? 0 : size < 0x100 ? 1 : size < 0x10000 ? 2 : 3);
      }),
    );
  });
});

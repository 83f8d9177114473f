import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AppError } from "./errors.ts";
import { parseMac, parseMachineId, parsePortMac, parsePowerShelfId } from "./ids.ts";

/** The error that the function throws. */
function refusal(parse: () => unknown): AppError {
  try {
    parse();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("a power shelf id", () => {
  const first = fc.constantFrom(..."abcdefghijklmnopqrstuvwxyz0123456789");
  const rest = fc.string({ unit: fc.constantFrom(..."abcdefghijklmnopqrstuvwxyz0123456789-"), maxLength: 62 });

  test("is any DNS-safe word of up to 63 characters, and comes back as it was", () => {
    fc.assert(
      fc.property(first, rest, (head, tail) => {
        expect(parsePowerShelfId(head + tail, "id")).toBe(head + tail);
      }),
    );
  });

  test("is nothing else, whatever text comes in", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: "binary" }), rest), (text) => {
        const isWord = text.length >= 1 && text.length <= 63 && !/[^a-z0-9-]/.test(text) && !text.startsWith("-");
        if (isWord) expect(parsePowerShelfId(text, "id")).toBe(text);
        else expect(refusal(() => parsePowerShelfId(text, "id")).kind).toBe("invalid_argument");
      }),
    );
  });

  test.each([["", "-a", "PS100", "a b", "a\n", "ä", "a".repeat(64), "../etc", "a/b"]].flat())(
    "%j is refused with the field and the rule",
    (text) => {
      const error = refusal(() => parsePowerShelfId(text, "power_shelf_ids[2]"));
      expect(error.kind).toBe("invalid_argument");
      expect(error.detail.field).toBe("power_shelf_ids[2]");
      expect(error.message).toMatch(/^power_shelf_ids\[2\]: .* is not a power shelf id \(1 to 63 characters/);
    },
  );

  test("that is far too long is not repeated in full", () => {
    expect(refusal(() => parsePowerShelfId("x".repeat(100_000), "id")).message.length).toBeLessThan(250);
  });
});

describe("a MAC address", () => {
  const octets = fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 6, maxLength: 6 });
  const hex = (octet: number) => octet.toString(16).padStart(2, "0");
  const canonical = (values: readonly number[]) => values.map(hex).join(":");
  const notations: readonly [string, (values: readonly number[]) => string][] = [
    ["colons", canonical],
    ["dashes", (values) => values.map(hex).join("-")],
    [
      "dots",
      (values) =>
        values
          .map(hex)
          .join("")
          .replace(/(....)(?=.)/g, "$1."),
    ],
    ["bare digits", (values) => values.map(hex).join("")],
    ["capitals", (values) => canonical(values).toUpperCase()],
  ];

  test.each(notations)("written with %s becomes the one notation", (_, write) => {
    fc.assert(
      fc.property(octets, (values) => {
        expect(parseMac(write(values), "bmc_mac_address")).toBe(canonical(values));
      }),
    );
  });

  test("in the one notation stays as it is", () => {
    fc.assert(
      fc.property(octets, (values) => {
        const once = parseMac(canonical(values), "mac");
        expect(parseMac(once, "mac")).toBe(once);
      }),
    );
  });

  test("whatever is accepted is in the one notation", () => {
    const nearly = fc.string({ unit: fc.constantFrom(..."0123456789abcdefABCDEF:.-"), maxLength: 20 });
    fc.assert(
      fc.property(fc.oneof(nearly, fc.string()), (text) => {
        try {
          expect(parseMac(text, "mac")).toMatch(/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/);
        } catch (error) {
          expect(error).toBeInstanceOf(AppError);
        }
      }),
    );
  });

  test.each([
    "",
    "02:00:5e:10:00",
    "02:00:5e:10:00:01:02",
    "02:00:5e:10:00:0g",
    "02:00:5e:10:00:01\n",
    "020:05:e1:00:00:1",
    "02:00-5e:10-00:01",
    ":02005e100001",
    "02005e100001-",
    "0200.5e10:0001",
  ])("%j is refused with the field", (text) => {
    const error = refusal(() => parseMac(text, "bmc_mac_address"));
    expect(error.kind).toBe("invalid_argument");
    expect(error.detail.field).toBe("bmc_mac_address");
    expect(error.message).toMatch(/^bmc_mac_address: .* is not a MAC address/);
  });
});

describe("a machine id", () => {
  test("follows the rule of all devices, and is refused as what it is", () => {
    expect(parseMachineId("m-rack1-03", "machine_id")).toBe("m-rack1-03");
    expect(refusal(() => parseMachineId("M_1", "machine_id"))).toMatchObject({
      kind: "invalid_argument",
      detail: { field: "machine_id" },
      message: expect.stringContaining('machine_id: "M_1" is not a machine id'),
    });
  });
});

test("a machine is known by the address of one port, and not by that of a group or of nobody", () => {
  expect(parsePortMac("02-00-5E-10-00-01", "mac")).toBe("02:00:5e:10:00:01");
  for (const text of ["ff:ff:ff:ff:ff:ff", "01005e000001", "00:00:00:00:00:00"])
    expect(refusal(() => parsePortMac(text, "mac")).message).toMatch(/^mac: .* and not of one network port$/);
});

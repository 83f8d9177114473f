import fc from "fast-check";
import { expect, test } from "vitest";
import { decode, encode, type Shape } from "./wire.ts";

const SHAPE: Shape = {
  id: { no: 1, as: "text" },
  count: { no: 2, as: "number" },
  on: { no: 3, as: "flag" },
  inner: { no: 4, as: { name: { no: 1, as: "text" } } },
  names: { no: 5, as: "text", many: "list" },
  byNumber: { no: 16, as: { name: { no: 1, as: "text" } }, many: "by_number" },
  byText: { no: 200, as: { name: { no: 1, as: "text" } }, many: "by_text" },
};

test("bytes are those of protocol buffers", () => {
  // As in the encoding guide: field 1 is the varint 150; field 2 is the text "testing".
  expect(encode({ a: { no: 1, as: "number" } }, { a: 150 }).toString("hex")).toBe("089601");
  expect(encode({ b: { no: 2, as: "text" } }, { b: "testing" }).toString("hex")).toBe("120774657374696e67");
  expect(encode({ c: { no: 3, as: { a: { no: 1, as: "number" } } } }, { c: { a: 150 } }).toString("hex")).toBe(
    "1a03089601",
  );
  expect(decode({ a: { no: 1, as: "number" } }, Buffer.from("08ffffffffffffffffff01", "hex"))).toEqual({ a: -1 });
});

const inner = fc.record({ name: fc.string() });
const message = fc.record({
  id: fc.string(),
  count: fc.integer(),
  on: fc.boolean(),
  inner,
  names: fc.array(fc.string(), { minLength: 1 }),
  byNumber: fc
    .array(fc.tuple(fc.nat(), inner), { minLength: 1 })
    .map((entries) => new Map<number, { name: string }>(entries)),
  byText: fc
    .array(fc.tuple(fc.string(), inner), { minLength: 1 })
    .map((entries) => new Map<string, { name: string }>(entries)),
});

test("what was written is read back, and fields that nobody knows are skipped", () => {
  fc.assert(
    fc.property(message, (written) => {
      const bytes = encode(SHAPE, written);
      expect(decode(SHAPE, bytes)).toEqual(written);
      const { id } = SHAPE;
      expect(decode({ ...(id && { id }) }, bytes)).toEqual({ id: written.id });
    }),
  );
});

test("bytes that are no message are refused, and never run on", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        decode(SHAPE, Buffer.from(bytes));
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
      }
    }),
  );
  expect(() => decode(SHAPE, Buffer.from("0a05", "hex"))).toThrow("in the middle of a field");
});

test("as many entries as fit into an answer are read one by one, and not all of them again for each", () => {
  const names = Buffer.concat(Array.from({ length: 400_000 }, () => Buffer.from([0x2a, 0x01, 0x61])));
  expect((decode(SHAPE, names).names as string[]).length).toBe(400_000);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { yamlOf } from "./output.ts";

const AMBIGUOUS = [
  "on",
  "off",
  "yes",
  "No",
  "y",
  "N",
  "~",
  "null",
  "",
  "true",
  "1:30",
  "190:20:30",
  "0o7",
  "010",
  "1_000",
  "0b1",
  ".5",
  "2026-01-01",
  "=",
  "<<",
  "0x1f",
  ".inf",
];

test("text stays text for readers of YAML 1.1 and 1.2 alike", async () => {
  const text = fc.oneof(fc.constantFrom(...AMBIGUOUS), fc.string(), fc.stringMatching(/^[0-9:_.+-]{1,8}$/));
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(
        text.filter((key) => key !== "__proto__"),
        text,
      ),
      async (value) => {
        const written = await yamlOf(value);
        expect(parse(written, { version: "1.2" })).toEqual(value);
        expect(parse(written, { version: "1.1", merge: false })).toEqual(value);
      },
    ),
  );
});

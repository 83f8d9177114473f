import { expect, test } from "vitest";
import { type CompletedField, completionOf, filterValue } from "./suggestions.ts";

const fields: readonly CompletedField[] = [
  { name: "phase", type: "words", operators: ["=", "!=", "IN"], values: ["READY", "RMA", "RETIRED"], doc: "" },
  { name: "rack", type: "text", operators: ["=", "!=", "~", "IN"], values: [], doc: "" },
  { name: "phase_since", type: "time", operators: ["<", ">"], values: [], doc: "" },
  { name: "labels", type: "labels", operators: ["=", "!="], values: [], doc: "" },
];
const words = (text: string) => completionOf(text, fields).suggestions.map((each) => each.text);

test.each([
  ["", ["phase", "rack", "phase_since", "labels."]],
  ["pha", ["phase", "phase_since"]],
  ["sinc", ["phase_since"]],
  ["NOT ra", ["rack"]],
  ["(ra", ["rack"]],
  ["phase ", ["=", "!=", " IN ("]],
  ["phase !", ["!="]],
  ["phase i", [" IN ("]],
  ["phase=", ["READY", "RMA", "RETIRED"]],
  ["phase=R", ["READY", "RMA", "RETIRED"]],
  ["phase=re", ["READY", "RETIRED"]],
  ["phase IN (READY, R", ["READY", "RMA", "RETIRED"]],
  ["phase=READY ", ["AND ", "OR "]],
  ["phase=READY a", ["AND "]],
  ["(phase=READY) O", ["OR "]],
  ["phase IN (READY, RMA) AND rack", []],
  ['rack="a b" AND pha', ["phase", "phase_since"]],
  ["phase_since>-", ["-30m", "-2h", "-1d", "-7d"]],
  ["labels.env=x AND ra", ["rack"]],
  ["nonsense=1 AND ra", ["rack"]],
  ["phase=, ", []],
])("after %j can stand %j", (text, expected) => {
  expect(words(text)).toEqual(expected);
});

test("values of text are asked for by what was typed of them, and replace that", () => {
  expect(completionOf('phase=READY AND rack="ra', fields)).toMatchObject({
    ...{ from: 21, asks: { field: "rack", prefix: "ra" } },
  });
  expect(completionOf("labels.env=", fields)).not.toHaveProperty("asks");
});

test.each([
  ["rack-1", "rack-1"],
  ["", '""'],
  ['a "b" \\', '"a \\"b\\" \\\\"'],
])("%j is written %j", (value, written) => {
  expect(filterValue(value)).toBe(written);
});

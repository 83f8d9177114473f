import { expect, test } from "vitest";
import { harmless } from "./hostile-text.ts";

test.each([
  ["plain text\twith a tab", "plain text\twith a tab"],
  ["\u001b[31mred\u001b[0m", "red"],
  ["\u001b]0;title\u0007after", "after"],
  ["over\rwritten", "over�written"],
  ["a\u202egnp.exe", "a�gnp.exe"],
  ["zero\u200bwidth", "zero�width"],
])("%j is shown as %j", (text, shown) => {
  expect(harmless(text)).toBe(shown);
});

import { expect, test } from "vitest";
import { spanText } from "./times.ts";

test.each([
  [0, "0.0 s"],
  [420, "0.4 s"],
  [9_940, "9.9 s"],
  [40_000, "40 s"],
  [119_000, "119 s"],
  [12 * 60_000, "12 min"],
  [200 * 60_000, "3 h 20 min"],
  [26 * 3_600_000, "1 d 2 h"],
  [400 * 86_400_000, "400 d"],
  [-5_000, "0.0 s"],
])("%i ms is %s", (ms, text) => {
  expect(spanText(ms)).toBe(text);
});

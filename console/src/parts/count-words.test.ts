import { expect, test } from "vitest";
import { countWords } from "./count-words.ts";

test.each([
  [1, "power_shelf", "1 power shelf"],
  [16, "power_shelf", "16 power shelves"],
  [18, "switch", "18 switches"],
  [100_000, "machine", "100,000 machines"],
  [2, "batch", "2 batches"],
  [0, "fleet_node", "0 fleet nodes"],
])("%i of %s: %s", (count, kind, words) => {
  expect(countWords(count, kind)).toBe(words);
});

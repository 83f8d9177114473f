import { expect, test } from "vitest";
import { styledParts } from "./ansi.ts";

test("colours and weights of a line become parts, and end where they are reset", () => {
  expect(styledParts("a\u001b[31mred\u001b[1mbold\u001b[0m b")).toEqual([
    { text: "a" },
    { text: "red", colour: 1 },
    { text: "bold", colour: 1, isBold: true },
    { text: " b" },
  ]);
  expect(styledParts("\u001b[92mok\u001b[39m\u001b[2m dim\u001b[22m on")).toEqual([
    { text: "ok", colour: 10 },
    { text: " dim", isDim: true },
    { text: " on", isBold: false, isDim: false },
  ]);
});

test("colours that no theme answers for are passed over with all their numbers", () => {
  expect(styledParts("\u001b[38;5;31mx\u001b[38;2;31;32;33;1my")).toEqual([{ text: "x" }, { text: "y", isBold: true }]);
});

test("text that would hide, move or turn something stays harmless", () => {
  expect(styledParts("\u001b[8mhidden\u001b[7m\u001b[2J\u001b]0;title\u0007\u202eevil\rx")).toEqual([
    { text: "hidden" },
    { text: "�evil�x" },
  ]);
});

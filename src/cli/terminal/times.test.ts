import { expect, test } from "vitest";
import { UsageError } from "../client/errors.ts";
import { age, describeDuration, isoTime, parseDuration } from "./times.ts";

const timestamp = (ms: number) => ({ seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1e6 });

test.each([
  [0, "0s"],
  [59_000, "59s"],
  [250_000, "4m 10s"],
  [93_600_000, "1d 2h"],
  [90_061_000, "1d 1h"],
])("%i ms is described as %s", (ms, text) => {
  expect(describeDuration(ms)).toBe(text);
});

test("an age in the future is shown as none, since clocks differ", () => {
  expect(age(timestamp(5_000), new Date(1_000))).toBe("0s");
});

test("times for programs are in UTC to the millisecond", () => {
  expect(isoTime(timestamp(1_234))).toBe("1970-01-01T00:00:01.234Z");
});

test.each([
  ["250ms", 250],
  ["90s", 90_000],
  ["5m", 300_000],
  ["2h", 7_200_000],
  ["30d", 2_592_000_000],
])("%s is understood", (text, ms) => {
  expect(parseDuration(text, "--timeout")).toBe(ms);
});

test.each(["", "5", "m", "-5m", "5 m", "1.5h", "5w"])("%j is refused with the option's name", (text) => {
  expect(() => parseDuration(text, "--timeout")).toThrow(UsageError);
  expect(() => parseDuration(text, "--timeout")).toThrow(/^--timeout: .*like 90s/);
});

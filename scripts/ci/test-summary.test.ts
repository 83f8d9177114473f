import { expect, test } from "vitest";
import { summarizeTests } from "./test-summary.ts";

test("the last line counts what passed, failed and was skipped", () => {
  const summary = summarizeTests([
    { file: "a.test.ts", title: "one", state: "passed" },
    { file: "a.test.ts", title: "two", state: "passed" },
  ]);
  expect(summary).toBe("2 passed, 0 failed, 0 skipped\n");
});

test("what was skipped is told by name, with the reason where there is one", () => {
  const summary = summarizeTests([
    { file: "a.test.ts", title: "with openssl", state: "skipped", note: "there is no openssl" },
    { file: "b.test.ts", title: "as root", state: "skipped" },
  ]);
  expect(summary).toBe(
    [
      "Skipped tests",
      "  a.test.ts: with openssl (there is no openssl)",
      "  b.test.ts: as root",
      "0 passed, 0 failed, 2 skipped",
      "",
    ].join("\n"),
  );
});

test("what passed on the second try only is told by name and counted apart; what failed twice has failed", () => {
  const summary = summarizeTests([
    { file: "a.test.ts", title: "one", state: "passed" },
    { file: "b.test.ts", title: "two", state: "passed", triedAgain: true },
    { file: "b.test.ts", title: "three", state: "failed", triedAgain: true },
    { file: "c.test.ts", title: "four", state: "passed", triedAgain: false },
  ]);
  expect(summary).toBe(
    [
      "Passed on the second try only: 1",
      "  b.test.ts: two",
      "Failed tests: 1",
      "  b.test.ts: three",
      "3 passed, 1 failed, 0 skipped",
      "",
    ].join("\n"),
  );
});

test.each([
  ["needs Debian's dnsmasq-base", "gives out addresses", true],
  [undefined, "over IPMI (needs openipmi) reads the power state", true],
  ["needs Linux and root, for a network namespace", "boots", false],
  ["this technology cannot lose answers", "asks again", false],
  [undefined, "needs to be given a disk", false],
])("a test that is skipped as %j, %j, has failed where counterparts are required: %s", (note, title, fails) => {
  const outcomes = [{ file: "a.test.ts", title, state: "skipped", note }] as const;
  const counts = (counterpartsRequired: boolean) =>
    summarizeTests(outcomes, { counterpartsRequired }).split("\n").at(-2);
  expect(counts(true)).toBe(fails ? "0 passed, 1 failed, 0 skipped" : "0 passed, 0 failed, 1 skipped");
  expect(counts(false)).toBe("0 passed, 0 failed, 1 skipped");
});

test("the ten slowest files are told first", () => {
  const times = Array.from({ length: 12 }, (_, index) => ({ file: `${index}.test.ts`, seconds: index }));
  const lines = summarizeTests([], { times }).split("\n");
  expect(lines.slice(0, 3)).toEqual(["Slowest test files", "    11 s  11.test.ts", "    10 s  10.test.ts"]);
  expect(lines).toHaveLength(1 + 10 + 2);
});

import { expect, test } from "vitest";
import { AppError } from "../../kernel/errors.ts";
import { describeFailure, wantsStack } from "./start-errors.ts";

const shown = (error: unknown, options = {}) =>
  describeFailure(error, { isConfigCheck: false, withStack: false, ...options });

test("where it happened is told to those who ask for it alone", () => {
  const bug = new Error("no such thing");
  expect(shown(bug)).toBe(
    "error: no such thing\n  try: the same with --log-level debug, which also tells where it happened\n",
  );
  expect(shown(bug, { withStack: true })).toMatch(/\n\s+at /);
});

test.each([
  [[], {}, false],
  [["--log-level", "debug"], {}, true],
  [["--log-level=trace"], {}, true],
  [["--log-level=info"], { MILLWRIGHT_LOG_LEVEL: "debug" }, false],
  [[], { MILLWRIGHT_LOG_LEVEL: "debug" }, true],
])("flags %j and variables %j ask for it: %s", (argv, env, asked) => {
  expect(wantsStack(argv, env)).toBe(asked);
});

test("config check does not send people to config check", () => {
  const error = new AppError("invalid_argument", "wrong", { next: "millwright config check" });
  expect(shown(error)).toContain("try: millwright config check");
  expect(shown(error, { isConfigCheck: true })).toBe("error: wrong\n");
});

test("attempts that all failed are told by their own messages", () => {
  expect(shown(new AggregateError([new Error("one"), new Error("two"), new Error("one")]))).toContain(
    "error: one; two\n",
  );
});

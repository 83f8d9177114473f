import { describe, expect, test } from "vitest";
import { CAUSES } from "./causes.ts";
import { AppError, causeOf, StepFailure } from "./errors.ts";

describe("the list of causes", () => {
  test("says of each what it means and what helps, in a sentence", () => {
    for (const { doc, helps } of Object.values(CAUSES)) {
      expect(doc).toMatch(/^[A-Zn].*\.$/);
      expect(helps).toMatch(/^[A-Z].*\.$/);
    }
  });

  test("spells them as labels, filters and JSON want them", () => {
    for (const code of Object.keys(CAUSES)) expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
  });
});

describe("the cause of what was thrown", () => {
  test("is that of the failure, with its facts", () => {
    const failure = new StepFailure("unreachable", "no route", { facts: { at: "ssh", address: "10.0.0.1:22" } });
    expect(causeOf(failure)).toEqual({ code: "unreachable", facts: { at: "ssh", address: "10.0.0.1:22" } });
    expect(causeOf(StepFailure.of(causeOf(failure), "again"))).toEqual(causeOf(failure));
  });

  test("is the server's own trouble, or a bug, where it was no failure", () => {
    expect(causeOf(new AppError("internal", "oops"))).toEqual({ code: "server_trouble" });
    expect(causeOf(new TypeError("x is undefined"))).toEqual({ code: "bug" });
    expect(causeOf("a bare string")).toEqual({ code: "bug" });
  });
});

test("a failure follows its cause, unless its thrower knows better", () => {
  expect(new StepFailure("script_failed", "exit code 1").disposition).toBe("retry");
  expect(new StepFailure("script_failed", "exit code 1", { disposition: "fail" }).disposition).toBe("fail");
  // @ts-expect-error who rejects them must be said
  new StepFailure("credentials_missing", "there are none");
  // @ts-expect-error a script has no peer
  new StepFailure("script_failed", "exit code 1", { facts: { at: "bmc" } });
  // @ts-expect-error the list is closed
  expect(() => new StepFailure("moon_full", "the moon is full")).toThrow();
});

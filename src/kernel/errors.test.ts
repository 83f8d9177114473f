import { describe, expect, test } from "vitest";
import { final } from "../../test/support/failures.ts";
import { AppError, ERROR_KINDS, messageOf, StepFailure } from "./errors.ts";

describe("an answer to a caller", () => {
  test("keeps its kind, message, field and next step", () => {
    const error = new AppError("invalid_argument", "reference: too long", { field: "reference", next: "shorten it" });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      name: "AppError",
      kind: "invalid_argument",
      message: "reference: too long",
      detail: { field: "reference", next: "shorten it" },
    });
  });

  test("has an empty detail when none is given, and keeps its cause", () => {
    const cause = new Error("socket closed");
    const error = new AppError("unavailable", "the database is out of reach", {}, { cause });
    expect(error.detail).toEqual({});
    expect(error.cause).toBe(cause);
    expect(new AppError("internal", "oops").detail).toEqual({});
  });

  test("is of one of thirteen kinds, each told once", () => {
    expect(new Set(ERROR_KINDS).size).toBe(ERROR_KINDS.length);
    expect(ERROR_KINDS).toHaveLength(13);
  });
});

describe("a failed piece of work", () => {
  test("says what should follow and, when the device said so, not before when", () => {
    const cause = new Error("503");
    const failure = new StepFailure("busy", "the BMC is busy", { retryAfterMs: 2_000, cause, facts: { at: "bmc" } });
    expect(failure).toMatchObject({ name: "StepFailure", disposition: "retry", retryAfterMs: 2_000, cause });
  });

  test("has no cause and no time when none is given", () => {
    const failure = final("the shelf refuses");
    expect(failure.retryAfterMs).toBeUndefined();
    expect("cause" in failure).toBe(false);
  });
});

test("whatever was thrown has a message", () => {
  expect(messageOf(final("the shelf refuses"))).toBe("the shelf refuses");
  expect(messageOf("a bare string")).toBe("a bare string");
  expect(messageOf(undefined)).toBe("undefined");
  expect(messageOf(null)).toBe("null");
});

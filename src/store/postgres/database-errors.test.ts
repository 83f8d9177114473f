import { expect, test } from "vitest";
import { AppError } from "../../kernel/errors.ts";
import { databaseError, isConnectionFailure, isSerializationConflict, retryOnConflict } from "./database-errors.ts";

const coded = (code: string) => Object.assign(new Error(`error ${code}`), { code });

test.each([
  [coded("ECONNREFUSED"), "unavailable"],
  [coded("ENOENT"), "unavailable"],
  [coded("57P01"), "unavailable"],
  [coded("08006"), "unavailable"],
  [coded("53300"), "unavailable"],
  [new Error("Connection terminated unexpectedly"), "unavailable"],
  [new Error("timeout exceeded when trying to connect"), "unavailable"],
  [coded("57014"), "deadline_exceeded"],
  [coded("25P04"), "deadline_exceeded"],
  [coded("53200"), "exhausted"],
])("%s is answered with %s", (error, kind) => {
  const answer = databaseError(error);
  expect(answer).toBeInstanceOf(AppError);
  expect(answer).toMatchObject({ kind, cause: error });
  expect(databaseError(answer)).toBe(answer);
});

test.each([coded("23505"), coded("42601"), coded("40001"), new Error("our own mistake"), "no error at all"])(
  "%s stays as it is",
  (error) => {
    expect(databaseError(error)).toBe(error);
  },
);

test("a lost connection is known as such before and after it became an answer", () => {
  expect(isConnectionFailure(coded("57P01"))).toBe(true);
  expect(isConnectionFailure(databaseError(coded("57P01")))).toBe(true);
  expect(isConnectionFailure(new AppError("unavailable", "a device is away"))).toBe(false);
  expect(isConnectionFailure(databaseError(coded("57014")))).toBe(false);
});

test("a conflict is tried again a few times and then handed on", async () => {
  let attempts = 0;
  const always = async () => {
    attempts += 1;
    throw coded("40P01");
  };
  const error = await retryOnConflict(always).catch((caught: unknown) => caught);
  expect(isSerializationConflict(error)).toBe(true);
  expect(attempts).toBe(6);
});

import { setTimeout as delay } from "node:timers/promises";
import { outOfFiles } from "../../kernel/causes/out-of-files.ts";
import { AppError, messageOf } from "../../kernel/errors.ts";

const codeOf = (error: unknown): string => {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
};

/** Node's and PostgreSQL's codes for: there is no connection, or none will be given. */
const UNREACHABLE = new Set([
  ...[
    "ECONNREFUSED",
    "ECONNRESET",
    "ENOENT",
    "EPIPE",
    "ETIMEDOUT",
    "ENOTFOUND",
    "EAI_AGAIN",
    "EHOSTUNREACH",
    "ENETUNREACH",
    "EACCES",
  ],
  ...["57P01", "57P02", "57P03", "57P05", "53300", "28000", "28P01", "3D000"],
]);

/** No such user, a wrong password, no such database: waiting changes none of it. */
const FOR_GOOD = new Set(["28000", "28P01", "3D000"]);

/** The server answers, and somebody has to correct the URL. */
export const isRefusedForGood = (error: unknown): boolean =>
  FOR_GOOD.has(codeOf(error instanceof AppError ? error.cause : error));

/** Statement cancelled, lock not had in time, idle in a transaction, transaction too long. */
const TOO_SLOW = new Set(["57014", "55P03", "25P03", "25P04"]);

/** Out of memory, mostly of the table that all locks are kept in. */
const NO_ROOM = "53200";

/** It answers, and takes no writes: somebody has to mend that, and until then nothing can be done. */
const NO_WRITES: Readonly<Record<string, string>> = {
  "25006": "it is read-only: a standby, a demoted primary, or default_transaction_read_only is on",
  "53100": "its disk is full",
};

/** Also when it has already been made an answer. */
export const takesNoWrites = (error: unknown): boolean =>
  codeOf(error instanceof AppError ? error.cause : error) in NO_WRITES;

/** What `pg` throws without any code when a connection breaks or cannot be had. */
const BROKEN_CONNECTION =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|timeout expired|Query read timeout|Client was closed and is not queryable|Cannot use a pool after calling end)/;

/** The pool could give no connection within the time that callers wait for one. */
export const isConnectTimeout = (error: unknown): boolean =>
  messageOf(error) === "timeout exceeded when trying to connect";

/** Also when it has already been made an answer: its cause tells. */
export const isConnectionFailure = (error: unknown): boolean => {
  if (error instanceof AppError) return error.kind === "unavailable" && isConnectionFailure(error.cause);
  const code = codeOf(error);
  return UNREACHABLE.has(code) || code.startsWith("08") || (code === "" && BROKEN_CONNECTION.test(messageOf(error)));
};

/** What a caller of the store gets: PostgreSQL's own error for mistakes and conflicts, an answer when the server failed us. */
export function databaseError(error: unknown): unknown {
  if (error instanceof AppError) return error;
  if (TOO_SLOW.has(codeOf(error))) {
    return new AppError("deadline_exceeded", `the database took too long: ${messageOf(error)}`, {}, { cause: error });
  }
  const why = NO_WRITES[codeOf(error)];
  if (why !== undefined)
    return new AppError("unavailable", `the database takes no writes: ${why}`, {}, { cause: error });
  if (codeOf(error) === NO_ROOM) {
    const message = `the database has no room for this now (${messageOf(error)}): ask again, change fewer things at once, or raise its max_locks_per_transaction`;
    return new AppError("exhausted", message, {}, { cause: error });
  }
  const lack = outOfFiles(error);
  if (lack !== undefined) return new AppError("unavailable", lack, {}, { cause: error });
  if (!isConnectionFailure(error)) return error;
  return new AppError("unavailable", `the database cannot be reached: ${messageOf(error)}`, {}, { cause: error });
}

/** Not the fault of what was to be read or written: the database is away, or too slow. */
export const isDatabaseTrouble = (error: unknown): boolean =>
  error instanceof AppError && (error.kind === "unavailable" || error.kind === "deadline_exceeded");

/** Two transactions got in each other's way and this one was undone: doing it again is right. */
export const isSerializationConflict = (error: unknown): boolean => ["40001", "40P01"].includes(codeOf(error));

/** `constraint` narrows it down to one; without it any unique or exclusion constraint counts. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  if (!["23505", "23P01"].includes(codeOf(error))) return false;
  return (
    constraint === undefined || (error instanceof Error && "constraint" in error && error.constraint === constraint)
  );
}

const ATTEMPTS = 6;
const FIRST_PAUSE_MS = 5;

/** Does `work`, a whole transaction, again while it ends in a conflict; every other error goes straight through. */
export async function retryOnConflict<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isSerializationConflict(error) || attempt >= ATTEMPTS) throw error;
    }
    // Of random length: two that collided at the same moment would collide again.
    await delay(FIRST_PAUSE_MS * 2 ** attempt * Math.random());
  }
}

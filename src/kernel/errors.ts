/** Why a caller's request was not carried out. The codes of each transport are in `api/transport/error-codes.ts`, one total table. */
export const ERROR_KINDS = [
  "invalid_argument",
  "unauthenticated",
  "permission_denied",
  "not_found",
  "already_exists",
  "failed_precondition",
  "conflict",
  "exhausted",
  "unsupported",
  "unavailable",
  "deadline_exceeded",
  "cancelled",
  "internal",
] as const;
export type ErrorKind = (typeof ERROR_KINDS)[number];

export interface ErrorDetail {
  /** The field of the request that is wrong, as the caller spells it. */
  readonly field?: string;
  /** The command or call that helps next. */
  readonly next?: string;
}

/** An answer to a caller. The message is sent as it is: it names the field, the rule, and what to do. */
export class AppError extends Error {
  readonly kind: ErrorKind;
  readonly detail: ErrorDetail;

  constructor(kind: ErrorKind, message: string, detail: ErrorDetail = {}, options?: ErrorOptions) {
    super(message, options);
    this.name = "AppError";
    this.kind = kind;
    this.detail = detail;
  }
}

/** What should happen after work on a device failed: try again, give up along the table's failure row, or wait for a person. */
export type Disposition = "retry" | "fail" | "intervene";

/** Work on a thing failed. Never crosses the API raw: its message becomes the thing's state reason or cause. */
export class StepFailure extends Error {
  readonly disposition: Disposition;
  /** Not before this many milliseconds, when the device said so. */
  readonly retryAfterMs: number | undefined;

  constructor(disposition: Disposition, message: string, options: { retryAfterMs?: number; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "StepFailure";
    this.disposition = disposition;
    this.retryAfterMs = options.retryAfterMs;
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

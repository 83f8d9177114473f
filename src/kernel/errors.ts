import { CAUSES, type Cause, type CauseCode, type CauseFacts, type Disposition, type FactsOf } from "./causes.ts";

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
  /** What is wrong with that field: the message without the field's name, for who names it otherwise. */
  readonly why?: string;
  /** The command or call that helps next. */
  readonly next?: string;
  /** After how long the same request may be admitted. */
  readonly retryAfterMs?: number;
  /** What `forge.Forge` answers with where its specification differs from its usual code for the kind. */
  readonly forgeCode?: "failed_precondition";
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

/** A field of the request is wrong, whatever the state is. */
export const wrongField = (field: string, why: string, detail: Pick<ErrorDetail, "next"> = {}): AppError =>
  new AppError("invalid_argument", `${field}: ${why}`, { field, why, ...detail });

/** The caller read something that another call has changed since. */
export const changedByAnother = (what: string): AppError =>
  new AppError("conflict", `${what} was changed by another call; call again`);

/** What a thrower knows of a failure besides its cause and its message. */
export type FailureOptions<C extends CauseCode> = {
  /** When the cause's own is not right here. */
  readonly disposition?: Disposition;
  /** Not before this many milliseconds, when the device said so. */
  readonly retryAfterMs?: number;
  /** The error that led to it. */
  readonly cause?: unknown;
} & (Record<never, never> extends FactsOf<C> ? { readonly facts?: FactsOf<C> } : { readonly facts: FactsOf<C> });

/** Required where the cause is somebody's: then who it is must be said. */
type OptionsArgument<C extends CauseCode> =
  Record<never, never> extends FactsOf<C> ? [options?: FailureOptions<C>] : [options: FailureOptions<C>];

/** Work on a thing failed. Never crosses the API raw: its message is for people, its code and its facts are for programs. */
export class StepFailure<C extends CauseCode = CauseCode> extends Error {
  /** One of the closed list of causes. */
  readonly code: CauseCode;
  readonly facts: CauseFacts;
  readonly disposition: Disposition;
  /** Not before this many milliseconds, when the device said so. */
  readonly retryAfterMs: number | undefined;

  constructor(code: C, message: string, ...[options]: OptionsArgument<C>) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.name = "StepFailure";
    this.code = code;
    this.facts = options?.facts ?? {};
    this.disposition = options?.disposition ?? CAUSES[code].disposition;
    this.retryAfterMs = options?.retryAfterMs;
  }

  /** For a cause that was found elsewhere: stored, or seen by a probe. */
  static of({ code, facts = {} }: Cause, message: string, disposition: Disposition = CAUSES[code].disposition) {
    return new StepFailure<CauseCode>(code, message, { disposition, facts: facts as FactsOf<CauseCode> });
  }
}

/** Why it failed, for programs. Whatever is neither a failure of the work nor an answer of the server is a bug. */
export function causeOf(error: unknown): Cause {
  if (error instanceof StepFailure) {
    const { code, facts } = error;
    return Object.keys(facts).length === 0 ? { code } : { code, facts };
  }
  return { code: error instanceof AppError ? "server_trouble" : "bug" };
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

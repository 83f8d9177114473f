import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type ErrorInfo, ErrorInfoSchema } from "../../../contract/millwright/v1/error_info_pb.js";
import { AppError, type ErrorKind } from "../../kernel/errors.ts";

interface ErrorCodes {
  readonly grpc: Code;
  /** For what is no RPC: over the Connect protocol the HTTP status follows from the gRPC code. */
  readonly http: number;
  readonly meaning: string;
  /** What the caller should do. */
  readonly caller: string;
}

/** Every way in which a request can fail, on every surface. `docs/reference/errors.md` is printed from it. */
// biome-ignore format: a table is read by its columns
export const ERROR_CODES = {
  invalid_argument:    { grpc: Code.InvalidArgument,    http: 400, meaning: "The request is wrong, whatever the state of things.", caller: "fix the request" },
  unauthenticated:     { grpc: Code.Unauthenticated,    http: 401, meaning: "There are no credentials, or they are not valid.", caller: "sign in" },
  permission_denied:   { grpc: Code.PermissionDenied,   http: 403, meaning: "The caller's roles do not allow it.", caller: "ask for the role" },
  not_found:           { grpc: Code.NotFound,           http: 404, meaning: "A thing that the request names does not exist.", caller: "check the id" },
  already_exists:      { grpc: Code.AlreadyExists,      http: 409, meaning: "The identity is taken.", caller: "choose another, or use the one that exists" },
  failed_precondition: { grpc: Code.FailedPrecondition, http: 409, meaning: "The request is right, the moment is wrong.", caller: "wait, or do first what the message says" },
  conflict:            { grpc: Code.Aborted,            http: 409, meaning: "Somebody else changed the thing meanwhile.", caller: "read it again and repeat" },
  exhausted:           { grpc: Code.ResourceExhausted,  http: 429, meaning: "A limit is reached.", caller: "back off, or ask for less" },
  unsupported:         { grpc: Code.Unimplemented,      http: 501, meaning: "The hardware or its provider cannot do it.", caller: "choose another way" },
  unavailable:         { grpc: Code.Unavailable,        http: 503, meaning: "The server is stopping, or something it needs is out of reach.", caller: "repeat later" },
  deadline_exceeded:   { grpc: Code.DeadlineExceeded,   http: 504, meaning: "It took longer than the caller allowed.", caller: "repeat with more time" },
  cancelled:           { grpc: Code.Canceled,           http: 499, meaning: "The caller ended the request.", caller: "nothing" },
  internal:            { grpc: Code.Internal,           http: 500, meaning: "A bug. The cause is in the server log under the reference that the message names.", caller: "report it with the reference" },
} as const satisfies Record<ErrorKind, ErrorCodes>;

/** The contracts whose clients expect codes of their own. */
export type Contract = "millwright" | "forge";

export const contractOf = (serviceTypeName: string): Contract =>
  serviceTypeName === "forge.Forge" ? "forge" : "millwright";

/**
 * The codes of `forge.Forge`, which its existing clients act on: a wrong state counts as a wrong argument, and a version that
 * no longer matches as a failed precondition.
 */
const FORGE_CODES = {
  invalid_argument: Code.InvalidArgument,
  unauthenticated: Code.Unauthenticated,
  permission_denied: Code.PermissionDenied,
  not_found: Code.NotFound,
  already_exists: Code.AlreadyExists,
  failed_precondition: Code.InvalidArgument,
  conflict: Code.FailedPrecondition,
  exhausted: Code.ResourceExhausted,
  unsupported: Code.Unimplemented,
  unavailable: Code.Unavailable,
  deadline_exceeded: Code.DeadlineExceeded,
  cancelled: Code.Canceled,
  internal: Code.Internal,
} as const satisfies Record<ErrorKind, Code>;

export const grpcCodeOf = (kind: ErrorKind, contract: Contract): Code =>
  contract === "forge" ? FORGE_CODES[kind] : ERROR_CODES[kind].grpc;

/** Logs what must not be sent, and returns the reference under which it can be found. */
export type ReportUnexpected = (cause: unknown) => string;

/**
 * Turns whatever was thrown into what the caller gets.
 *
 * Only the message of an AppError is meant for callers. Anything else is a bug: its text may hold what nobody outside should
 * read, so it goes to the log and the caller gets a reference.
 */
export function toConnectError(error: unknown, contract: Contract, report: ReportUnexpected): ConnectError {
  if (error instanceof ConnectError) return error;
  const { kind, message, field, next } = toAnswer(error, report);
  const detail = { desc: ErrorInfoSchema, value: create(ErrorInfoSchema, { kind, field, next }) };
  const isOwnCode = contract === "forge" && error instanceof AppError && error.detail.forgeCode !== undefined;
  const code = isOwnCode ? Code.FailedPrecondition : grpcCodeOf(kind, contract);
  const retryAfter = retryAfterOf(error);
  const metadata = retryAfter === undefined ? undefined : { [RETRY_AFTER]: retryAfter };
  return new ConnectError(message, code, metadata, [detail], error);
}

export const RETRY_AFTER = "retry-after";

/** In whole seconds, as the header has it; undefined where nobody knows. */
export function retryAfterOf(error: unknown): string | undefined {
  const wait = error instanceof AppError ? error.detail.retryAfterMs : undefined;
  return wait === undefined ? undefined : String(Math.max(1, Math.ceil(wait / 1_000)));
}

/** The same for what is no RPC. */
export function toHttpError(
  error: unknown,
  report: ReportUnexpected,
): { readonly status: number; readonly body: HttpErrorBody } {
  const answer = toAnswer(error, report);
  return { status: ERROR_CODES[answer.kind].http, body: { error: answer } };
}

export interface HttpErrorBody {
  readonly error: Answer;
}

interface Answer extends Pick<ErrorInfo, "field" | "next"> {
  readonly kind: ErrorKind;
  readonly message: string;
}

function toAnswer(error: unknown, report: ReportUnexpected): Answer {
  if (error instanceof AppError && error.kind !== "internal") {
    return {
      kind: error.kind,
      message: bounded(error.message),
      field: bounded(error.detail.field ?? ""),
      next: bounded(error.detail.next ?? ""),
    };
  }
  const message = `internal error; see the server log, reference ${report(error)}`;
  return { kind: "internal", message, field: "", next: "" };
}

/** Messages travel in HTTP headers, whose size clients bound; and gRPC sends them twice and percent-encoded. */
const MAX_MESSAGE_CHARS = 1_000;

/** Well-formed too: text from a request may hold half a surrogate pair, which cannot be percent-encoded. */
function bounded(message: string): string {
  const short = message.length <= MAX_MESSAGE_CHARS ? message : `${message.slice(0, MAX_MESSAGE_CHARS)}… (cut)`;
  return short.toWellFormed();
}

import type { Code as CodeEnum, ConnectError } from "@connectrpc/connect";

/** What the exit code says to scripts. */
export const EXIT = {
  ok: 0,
  /** The request was accepted, and what it asked for failed. */
  operationFailed: 1,
  usage: 2,
  notFound: 3,
  /** The moment is wrong: failed precondition, conflict, exists already, not supported. */
  precondition: 4,
  /** Not signed in, or not allowed. */
  denied: 5,
  /** No server, or no answer in time. */
  unavailable: 6,
  internal: 70,
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** For people, in help and in the reference. */
const EXIT_MEANINGS = {
  ok: "done",
  operationFailed: "the operation failed",
  usage: "wrong input",
  notFound: "not found",
  precondition: "not possible now",
  denied: "not allowed",
  unavailable: "no server or no answer in time",
  internal: "internal error",
  interrupted: "interrupted",
} as const satisfies Record<keyof typeof EXIT, string>;

/** Each exit code with its meaning. */
export const exitCodes = (): readonly (readonly [ExitCode, string])[] =>
  (Object.keys(EXIT) as (keyof typeof EXIT)[]).map((name) => [EXIT[name], EXIT_MEANINGS[name]]);

/** A command that ends with one line for people, perhaps a hint, and an exit code. */
export class CliError extends Error {
  readonly exitCode: ExitCode;
  readonly hint: string | undefined;

  constructor(exitCode: ExitCode, message: string, hint?: string) {
    super(message);
    this.name = "CliError";
    this.exitCode = exitCode;
    this.hint = hint;
  }
}

/** The command line says something that cannot be meant. */
export class UsageError extends CliError {
  constructor(message: string, hint?: string) {
    super(EXIT.usage, message, hint);
    this.name = "UsageError";
  }
}

/** How a failed command ends. */
export interface Failure {
  readonly message: string;
  readonly hint: string | undefined;
  readonly exitCode: ExitCode;
}

type CodeName = keyof typeof CodeEnum;

/** Total: a code that Connect adds does not compile until it has its row. */
const EXIT_OF_CODE = {
  InvalidArgument: EXIT.usage,
  OutOfRange: EXIT.usage,
  NotFound: EXIT.notFound,
  AlreadyExists: EXIT.precondition,
  FailedPrecondition: EXIT.precondition,
  Aborted: EXIT.precondition,
  Unimplemented: EXIT.precondition,
  Unauthenticated: EXIT.denied,
  PermissionDenied: EXIT.denied,
  Unavailable: EXIT.unavailable,
  DeadlineExceeded: EXIT.unavailable,
  ResourceExhausted: EXIT.unavailable,
  Canceled: EXIT.unavailable,
  Unknown: EXIT.internal,
  Internal: EXIT.internal,
  DataLoss: EXIT.internal,
} as const satisfies Record<CodeName, ExitCode>;

/** The server's own word for why, where it gives one: it is finer than the code, which some contracts prescribe. */
const EXIT_OF_KIND = new Map<string, ExitCode>([
  ["invalid_argument", EXIT.usage],
  ["unauthenticated", EXIT.denied],
  ["permission_denied", EXIT.denied],
  ["not_found", EXIT.notFound],
  ["already_exists", EXIT.precondition],
  ["failed_precondition", EXIT.precondition],
  ["conflict", EXIT.precondition],
  ["unsupported", EXIT.precondition],
  ["exhausted", EXIT.unavailable],
  ["unavailable", EXIT.unavailable],
  ["deadline_exceeded", EXIT.unavailable],
  ["cancelled", EXIT.unavailable],
  ["internal", EXIT.internal],
]);

const HINT_OF_CODE: { readonly [name in CodeName]?: string } = {
  Unauthenticated: "give a token with --token-file or MILLWRIGHT_TOKEN; `millwright token create` makes one",
  PermissionDenied: "`millwright system` shows who you are and which roles you have",
  // Only where the answer has no word of Millwright's own: what a provider cannot do is said in the message.
  Unimplemented:
    "check --server, which takes the HTTP address that the server prints at its start; if the address is right, the server has another version than `millwright --version`",
};

/** System errors that mean that there was no server to talk to. */
const NO_SERVER = [
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ETIMEDOUT",
  "EPIPE",
];

/** Codes of Node and OpenSSL about certificates and the handshake. */
const TLS_TROUBLE = /CERT|^ERR_SSL|^ERR_TLS|^UNABLE_TO_/;

/** The errno word of an error or of what caused it. */
export function systemCodeOf(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if ("code" in at && typeof at.code === "string") return at.code;
    if (at instanceof AggregateError && at.errors.length > 0) return systemCodeOf(at.errors[0]);
  }
  return undefined;
}

/** Without loading Connect: a command that never connected has no such error. */
export const isConnectError = (error: unknown): error is ConnectError =>
  error instanceof Error && error.name === "ConnectError";

/** True when there was a connection, and it broke off. */
export const wasCut = (error: unknown): boolean => ["ECONNRESET", "EPIPE"].includes(systemCodeOf(error) ?? "");

/** True when there is no connection, or no more. */
export function isDisconnection(error: unknown): boolean {
  const code = systemCodeOf(error);
  if (code !== undefined && (NO_SERVER.includes(code) || code.startsWith("UND_ERR"))) return true;
  const unavailable: CodeEnum.Unavailable = 14;
  const aborted: CodeEnum.Aborted = 10;
  return isConnectError(error) && (error.code === unavailable || error.code === aborted);
}

/** One line, whatever the message holds. */
export const oneLine = (text: string): string => text.replace(/\s*\n\s*/g, " ").trim();

/** What an error says, in one line; Connect puts its code in brackets before it, which is no news for people. */
export function reasonOf(error: unknown): string {
  if (isConnectError(error)) return oneLine(error.rawMessage);
  return oneLine(error instanceof Error ? error.message : String(error));
}

/** Node's HTTP/1.1 parser met something else: most likely the server's own gRPC port, which speaks HTTP/2 alone. */
const NOT_HTTP = /^HPE_/;

/** What to tell the user about anything thrown. `server` names whom we talked to, once that is known. */
export async function describeFailure(error: unknown, server: string | undefined): Promise<Failure> {
  if (error instanceof CliError) return { message: error.message, hint: error.hint, exitCode: error.exitCode };
  const systemCode = systemCodeOf(error);
  if (
    server !== undefined &&
    systemCode !== undefined &&
    (NO_SERVER.includes(systemCode) || systemCode.startsWith("UND_ERR"))
  ) {
    return {
      message: `cannot reach the server at ${server} (${systemCode})`,
      hint: "start one with `npm start` or `millwright dev`, or name another with --server",
      exitCode: EXIT.unavailable,
    };
  }
  if (server !== undefined && systemCode !== undefined && NOT_HTTP.test(systemCode)) {
    return {
      message: `${server} does not speak HTTP/1.1`,
      hint: "is it the gRPC port? --server takes the HTTP address, which the server prints at its start (port 8080 unless set otherwise)",
      exitCode: EXIT.unavailable,
    };
  }
  if (server !== undefined && systemCode === "EPROTO") {
    return {
      message: `${server} does not speak TLS`,
      hint: `is it http:// in place of https://? --server takes the address that the server prints at its start`,
      exitCode: EXIT.unavailable,
    };
  }
  if (server !== undefined && systemCode !== undefined && TLS_TROUBLE.test(systemCode)) {
    return {
      message: `no trusted connection to ${server} (${systemCode})`,
      hint: "--ca-file names the CA of the server's certificate; --client-cert and --client-key a certificate of your own, if it wants one",
      exitCode: EXIT.unavailable,
    };
  }
  if (isConnectError(error)) return describeRefusal(error, server);
  return { message: reasonOf(error), hint: undefined, exitCode: EXIT.internal };
}

async function describeRefusal(error: ConnectError, server: string | undefined): Promise<Failure> {
  const [{ Code }, { ErrorInfoSchema }] = await Promise.all([
    import("@connectrpc/connect"),
    import("../../../contract/millwright/v1/error_info_pb.js"),
  ]);
  const name = Code[error.code] as CodeName;
  const info = error.findDetails(ErrorInfoSchema)[0];
  const said = oneLine(error.rawMessage);
  // 404 without a word of Millwright's own: another program, a path too many, or a server that is too old.
  const message = said || (name === "Unimplemented" ? `${server ?? "the server"} does not know this call` : name);
  // A plain HTTP answer (a proxy, another program on the port) has no Connect error in it.
  const foreign = /^HTTP \d+|unsupported content type|invalid content-type/i.test(message);
  if (foreign) {
    return {
      message: `${server ?? "the server"} did not answer as Millwright does: ${message}`,
      hint: "check --server; it is the HTTP address that the server prints at its start",
      exitCode: EXIT.unavailable,
    };
  }
  return {
    message,
    hint: info?.next ? oneLine(info.next) : name === "Unimplemented" && said !== "" ? undefined : HINT_OF_CODE[name],
    exitCode: EXIT_OF_KIND.get(info?.kind ?? "") ?? EXIT_OF_CODE[name],
  };
}

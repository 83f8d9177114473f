import {
  type DestinationStream,
  destination,
  type Logger,
  type LoggerOptions,
  pino,
  stdSerializers,
  stdTimeFunctions,
} from "pino";
import { readableLine } from "./log-lines.ts";
import { withoutSecrets, withoutSecretText } from "./redaction.ts";

export interface LogOptions {
  readonly level: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  /** `auto`: readable lines on a terminal, JSON elsewhere. */
  readonly format: "auto" | "json" | "text";
  /** Where to; standard error unless told, so that standard output stays for what a command prints. */
  readonly output?: DestinationStream & { readonly isTTY?: boolean };
  /** In every line, such as the replica's id. */
  readonly base?: Readonly<Record<string, unknown>>;
}

const errorFields = (error: unknown): unknown =>
  withoutSecrets(error instanceof Error ? stdSerializers.err(error) : error);

/**
 * Structured logs without secrets: fields are hidden by name, and text that gives itself away as a secret is hidden wherever it
 * stands, also in messages and stack traces.
 */
export function createLog({ level, format, output, base = {} }: LogOptions): Logger {
  const isTerminal = output === undefined ? process.stderr.isTTY === true : output.isTTY === true;
  const readable = format === "text" || (format === "auto" && isTerminal);
  // Synchronous: the last lines before a crash are the ones that matter.
  const raw: DestinationStream = output ?? destination({ fd: 2, sync: true });
  const options: LoggerOptions = {
    level,
    base,
    timestamp: stdTimeFunctions.isoTime,
    serializers: { err: errorFields, error: errorFields, cause: errorFields },
    formatters: {
      level: (word) => ({ level: word }),
      bindings: (bindings) => withoutSecrets(bindings) as Record<string, unknown>,
      log: (fields) => withoutSecrets(fields) as Record<string, unknown>,
    },
    hooks: { streamWrite: withoutSecretText },
  };
  const log = pino(options, readable ? { write: (line) => raw.write(readableLine(line, isTerminal)) } : raw);
  return hidingBindings(log);
}

/** What the configuration says, unless an operator has set another level for a time. */
export class LogLevel {
  readonly #log: { level: string };
  #configured: string;
  #given: string | null = null;

  constructor(log: { level: string }, configured: string) {
    this.#log = log;
    this.#configured = configured;
  }

  /** Null: what the configuration says. */
  readonly set = (given: string | null): void => {
    this.#given = given;
    this.#log.level = given ?? this.#configured;
  };

  configure(level: string): void {
    this.#configured = level;
    this.set(this.#given);
  }
}

/** pino does not format the bindings of child loggers; children inherit this method, and so do their children. */
function hidingBindings(log: Logger): Logger {
  const child = log.child;
  log.child = function (this: Logger, bindings: object, options?: object) {
    return child.call(this, withoutSecrets(bindings) as Record<string, unknown>, options);
  } as Logger["child"];
  return log;
}

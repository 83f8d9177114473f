type Write = (fields: object, message: string) => void;

/** What the parts say about themselves. A pino logger is one; tests pass their own. */
export interface Log {
  readonly debug: Write;
  readonly info: Write;
  readonly warn: Write;
  readonly error: Write;
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };

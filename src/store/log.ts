type Write = (fields: object, message: string) => void;

/** What the store says about itself. A pino logger is one; tests pass their own. */
export interface StoreLog {
  readonly debug: Write;
  readonly info: Write;
  readonly warn: Write;
  readonly error: Write;
}

export const silentLog: StoreLog = { debug() {}, info() {}, warn() {}, error() {} };

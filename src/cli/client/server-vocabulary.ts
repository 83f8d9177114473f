/** What the command line knows of the server without asking it; generated, since it may not import the server's own tables. */
export interface ServerVocabulary {
  /** What a token may be given. */
  readonly roles: readonly string[];
  /** Every setting of the server that is also a flag of its commands. */
  readonly settings: readonly ServerSetting[];
}

export interface ServerSetting {
  readonly flag: string;
  /** Completes "must be …". */
  readonly rule: string;
  /** Empty when unset by default. */
  readonly default: string;
  /** What `dev` takes instead; empty when the same. */
  readonly dev: string;
  readonly doc: string;
}

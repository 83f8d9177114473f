/** What the command line knows of the server without asking it; generated, since it may not import the server's own tables. */
export interface ServerVocabulary {
  /** What a token may be given. */
  readonly roles: readonly string[];
  /** Every setting of the server that is also a flag of its commands. */
  readonly settings: readonly ServerSetting[];
  /** Every kind of thing. */
  readonly kinds: readonly ServerKind[];
}

export interface ServerKind {
  readonly kind: string;
  /** Typed in place of the kind; empty when there is no such word. */
  readonly short: string;
  /** How long its ids are; 0 when people choose them. */
  readonly idLength: number;
}

export interface ServerSetting {
  readonly flag: string;
  /** A switch needs no value. */
  readonly takes: "switch" | "file" | "directory" | "value";
  /** The only values; empty for any. */
  readonly words: readonly string[];
  /** Empty when unset by default. */
  readonly default: string;
  /** What `dev` takes instead; empty when the same. */
  readonly dev: string;
  readonly doc: string;
}

import type { StreamCall } from "../stream.ts";

/** A file that is to be here: where it comes from, and what it must be. */
export interface ArtifactOrder {
  /** `sha256:` and 64 lower-case hexadecimal digits. */
  readonly digest: string;
  /** Who wants it. Two that want the same file never write to the same part of it. */
  readonly wantedBy: string;
  readonly url: string;
  /** Null where nobody has said. */
  readonly bytes: number | null;
  /** Headers that prove who we are, such as a token. They go to the host of the URL alone, and never unencrypted. */
  readonly secretHeaders: Readonly<Record<string, string>>;
}

/** A whole file. */
export interface KeptArtifact {
  readonly bytes: number;
  readonly changedAt: Date;
  /** All bytes, or those of a range, both ends included. */
  chunks(range?: { readonly start: number; readonly end: number }): AsyncIterable<Uint8Array>;
}

/**
 * Files that are kept by their digest. A file has its name only once it is whole and is what its digest says: whoever finds it can
 * rely on it. All replicas of a site use the same directory.
 */
export interface Artifacts {
  /**
   * Makes the file be here: goes on where an earlier attempt stopped, where the server can do so. Returns its size.
   *
   * @throws StepFailure "retry" for what may pass, "fail" where the server refuses, the file is too large or is another one.
   */
  fetch(order: ArtifactOrder, stream: StreamCall): Promise<number>;
  find(digest: string): Promise<KeptArtifact | undefined>;
  /** Removes what no record names. Files that changed lately stay: the record that names them may be in the making. */
  sweep(named: ReadonlySet<string>): Promise<void>;
}

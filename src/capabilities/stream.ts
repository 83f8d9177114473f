import type { Peer } from "../kernel/causes.ts";
import type { Duration } from "../kernel/time/duration.ts";
import type { CallContext } from "./call.ts";

/**
 * The frame of a device call that is a stream, such as an upload of firmware. It may last longer than any pass or lease, and is
 * sent in chunks: a chunk leaves only while the lease is ours, so that a replica that took over never finds us sending.
 */
export interface StreamCall extends CallContext {
  /**
   * Sends one chunk. The lease is checked just before `send` is called, so `send` writes at once: read what is sent before.
   * The signal aborts after the longest chunk, on cancel, on a stop of the process and when the lease is lost.
   */
  sendChunk<T>(send: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Aborts when what has not begun yet is not wanted any more; what has begun goes on. Absent: it stays wanted. */
  readonly withdrawn?: AbortSignal;
  /** How far it has come, for people. The step's message shows it, renewed every few seconds. */
  report(progress: StreamProgress): void;
}

/** The frame of an action that was declared as a stream. */
export function streamOf(call: CallContext): StreamCall {
  if ("sendChunk" in call) return call as StreamCall;
  throw new Error(`${call.subject}: the call is no stream; declare "streams" with the step`);
}

export interface StreamProgress {
  readonly bytes: number;
  /** Absent: the sender does not know how many there will be. */
  readonly of?: number;
}

export interface StreamOptions {
  /** Who is sent to, for causes. */
  readonly to: Peer;
  /** A chunk that takes longer is given up, and the stream with it. A takeover waits so long after the lease's end. */
  readonly longestChunk: Duration;
}

/** How a stream ended. */
export type StreamEnd<T = unknown> = { readonly value: T } | { readonly error: unknown };

/** A stream that outlives the pass that opened it. The passes that follow under the same lease look after it. */
export interface OpenStream<T = unknown> {
  readonly progress: StreamProgress | undefined;
  /** How it ended, for the pass that writes what comes of it. Undefined while it goes on. */
  take(): StreamEnd<T> | undefined;
  /** What has begun goes on, and nothing more is begun. May be called again. */
  withdraw(): void;
  /** No further chunk leaves. Resolves when nothing of the stream can be on its way to the device any more. */
  stop(reason: Error): Promise<void>;
}

/** The streams under one lease. There is one at a time. */
export interface Streams {
  /** Opened by an earlier pass under this lease, until the pass that took its end is written. */
  readonly underWay: OpenStream | undefined;
  /** This replica has as many streams open as it may have. */
  readonly isFull: boolean;
  /**
   * Begins the work and returns at once. Before that, the lease in the database is made to outlast our own by the longest chunk:
   * a replica that takes over waits for it.
   */
  open<T>(options: StreamOptions, work: (call: StreamCall) => Promise<T>): Promise<OpenStream<T>>;
}

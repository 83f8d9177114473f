import type { Duration } from "../kernel/time/duration.ts";
import type { Streams } from "./stream.ts";

/**
 * The frame of one piece of work on devices.
 *
 * `signal` ends it: shutdown, cancel, timeout or a lost lease. `mayTouchDevice` is asked just before each request leaves the
 * process and throws once the lease is no longer ours; whoever took over may then act, and we must not.
 */
export interface CallContext {
  readonly signal: AbortSignal;
  /** What is left for one device request: never more than the lease. Throws `StepFailure("retry")` when the lease is gone. */
  mayTouchDevice(wanted: Duration): Duration;
  /** False while we are being stopped: what was announced is still done, and nothing new is. Absent: yes. */
  readonly mayBegin?: () => boolean;
  /** Calls that outlive the pass. Absent where there is no lease to hold them under. */
  readonly streams?: Streams;
  /** The thing and the purpose, for logs and spans. */
  readonly subject: string;
}

/**
 * Where the present comes from; injected, so that tests own time.
 *
 * `monotonic` is for leases and timeouts: it keeps counting while the process is stopped and never jumps back.
 */
export interface Clock {
  now(): Date;
  /** Milliseconds since an arbitrary start. */
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => new Date(),
  monotonic: () => performance.now(),
};

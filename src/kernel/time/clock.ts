/**
 * Where the present comes from; injected, so that tests own time.
 *
 * `monotonic` is for leases and timeouts: it keeps counting while the process is stopped and never jumps back.
 */
export interface Clock {
  now(): Date;
  /** Milliseconds since an arbitrary start. */
  monotonic(): number;
  /** Of a clock that goes by another one: is told what that one showed. */
  heard?(reading: ClockReading): void;
}

/** What another clock showed, in milliseconds since 1970, at some moment between `askedAt` and when this is told. */
export interface ClockReading {
  /** On our own monotonic clock. */
  readonly askedAt: number;
  readonly shown: number;
}

export const systemClock: Clock = {
  now: () => new Date(),
  monotonic: () => performance.now(),
};

/** Taken just before the other clock is asked; to be called at once with what it showed. */
export function readingFor(clock: Clock): (shown: number) => void {
  const askedAt = clock.monotonic();
  return (shown) => clock.heard?.({ askedAt, shown });
}

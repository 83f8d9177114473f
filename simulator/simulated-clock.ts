/** A moment of both times at once, and how fast simulated time runs from there. All in milliseconds. */
export interface ClockAnchor {
  readonly realAt: number;
  readonly simulatedAt: number;
  readonly speed: number;
}

/**
 * Simulated time: real time, stretched by the speed factor.
 *
 * Due times are kept in simulated time, so a change of speed leaves pending changes as they are: they only come sooner or
 * later. The anchor is all there is to persist, and time goes on while the process is down, as it does for real gear.
 */
export interface SimulatedClock {
  /** Simulated milliseconds. */
  now(): number;
  /** Real milliseconds since 1970. */
  realNow(): number;
  /** The real time of a simulated moment, as devices write it into their logs. */
  realTimeOf(simulated: number): number;
  readonly speed: number;
  /** Returns the new anchor, for the caller to persist. */
  setSpeed(speed: number): ClockAnchor;
}

export const SLOWEST_SPEED = 0.001;
export const FASTEST_SPEED = 1_000_000;

export function createSimulatedClock(start: ClockAnchor, realNow: () => number = Date.now): SimulatedClock {
  let anchor = start;
  const now = () => anchor.simulatedAt + (realNow() - anchor.realAt) * anchor.speed;
  return {
    now,
    realNow,
    realTimeOf: (simulated) => anchor.realAt + (simulated - anchor.simulatedAt) / anchor.speed,
    get speed() {
      return anchor.speed;
    },
    setSpeed(speed) {
      anchor = { realAt: realNow(), simulatedAt: now(), speed };
      return anchor;
    },
  };
}

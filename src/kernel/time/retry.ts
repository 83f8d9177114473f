import { type Duration, milliseconds, minutes, seconds } from "./duration.ts";

export interface BackOff {
  readonly first: Duration;
  readonly most: Duration;
}

/** Polling a device that is on its way: 0.2 s growing to 10 s. */
export const polling: BackOff = { first: milliseconds(200), most: seconds(10) };
/** After failures: a device that is down is not helped by being asked every second. */
export const retrying: BackOff = { first: seconds(1), most: minutes(1) };

/** The pause before try number `attempt` (from 1): doubling up to the most, spread by ±20 % so that a crowd does not return as one. */
export function pauseBefore(attempt: number, backOff: BackOff, random: () => number = Math.random): Duration {
  const doubled = backOff.first * 2 ** Math.min(Math.max(attempt, 1) - 1, 30);
  return milliseconds(Math.round(Math.min(doubled, backOff.most) * (0.8 + random() * 0.4)));
}

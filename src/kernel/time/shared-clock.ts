import { type Log, silentLog } from "../log.ts";
import { type Clock, type ClockReading, systemClock } from "./clock.ts";
import { type Duration, describeDuration, milliseconds, seconds } from "./duration.ts";

/** By how much two clocks may drift apart, for each millisecond that nothing is heard: more than a clock that is being set right does. */
const DRIFT = 0.001;
/** A host whose clock is off by more than this should be looked after. */
const TOLERATED: Duration = seconds(1);
/** And then counts as right again only once it is clearly so. */
const RIGHT_AGAIN: Duration = milliseconds(TOLERATED / 2);

/** How much later the shared clock is than our monotonic one: between `least` and `most`, as known `at` a time on the latter. */
interface Offset {
  readonly least: number;
  readonly most: number;
  readonly at: number;
}

export interface SharedClockOptions {
  /** This host's; absent: the system's. */
  readonly local?: Clock;
  readonly log?: Log;
}

/**
 * One clock for all replicas: the database's. What one of them writes ("the attempt began at") another one compares with its own
 * "now", so that hosts whose clocks differ would fail attempts at once, or sleep for the difference.
 *
 * Nobody asks the database for the time: statements that are sent anyway bring it along (`heard`). It was shown at some moment
 * between asking and hearing, which bounds the offset to our monotonic clock; many such bounds together are much narrower than a
 * round trip. Until the first, and only until then, this is the local clock.
 */
export class SharedClock implements Clock {
  readonly #local: Clock;
  readonly #log: Log;
  #offset: Offset | undefined;
  #told = Number.NEGATIVE_INFINITY;
  #isOff = false;

  constructor({ local = systemClock, log = silentLog }: SharedClockOptions = {}) {
    this.#local = local;
    this.#log = log;
  }

  monotonic(): number {
    return this.#local.monotonic();
  }

  /** Never earlier than what it told before, unless a measurement has proven that to be too late; then not earlier than it must. */
  now(): Date {
    const monotonic = this.#local.monotonic();
    const offset = this.#offsetAt(monotonic);
    if (offset === undefined) return this.#local.now();
    const best = monotonic + (offset.least + offset.most) / 2;
    this.#told = Math.min(Math.max(best, this.#told), monotonic + offset.most);
    return new Date(this.#told);
  }

  heard({ askedAt, shown }: ClockReading): void {
    const at = this.#local.monotonic();
    // By `askedAt` it was no more than that; since then both clocks may have drifted apart.
    const heard = { least: shown - at, most: shown - askedAt + (at - askedAt) * DRIFT, at };
    const known = this.#offsetAt(at);
    const both = known && { least: Math.max(known.least, heard.least), most: Math.min(known.most, heard.most), at };
    // Bounds that contradict each other: the clock was set, or it is another server's by now.
    this.#offset = both !== undefined && both.least <= both.most ? both : heard;
    this.#compare();
  }

  /** The most that `now` can be wrong by; nobody knows before the first measurement. */
  get uncertainty(): number {
    const offset = this.#offsetAt(this.#local.monotonic());
    return offset === undefined ? Number.POSITIVE_INFINITY : offset.most - offset.least;
  }

  /** Milliseconds by which this host's clock is ahead of the shared one, negative when behind; undefined before the first measurement. */
  get localIsAheadBy(): number | undefined {
    const monotonic = this.#local.monotonic();
    const offset = this.#offsetAt(monotonic);
    return offset && this.#local.now().getTime() - (monotonic + (offset.least + offset.most) / 2);
  }

  /** What is wrong with this host's clock, for people; null when nothing is. */
  get trouble(): string | null {
    return this.#isOff ? `this host's clock is ${describeAhead(this.localIsAheadBy ?? 0)} the database's` : null;
  }

  #offsetAt(monotonic: number): Offset | undefined {
    if (this.#offset === undefined) return undefined;
    const { least, most, at } = this.#offset;
    const drift = Math.max(0, monotonic - at) * DRIFT;
    return { least: least - drift, most: most + drift, at: monotonic };
  }

  /** Certificates and logs go by the host's clock, so that somebody should hear of it: once, and once more when it is right again. */
  #compare(): void {
    const ahead = this.localIsAheadBy ?? 0;
    const doubt = this.uncertainty / 2;
    const wasOff = this.#isOff;
    if (Math.abs(ahead) - doubt > TOLERATED) this.#isOff = true;
    else if (Math.abs(ahead) + doubt < RIGHT_AGAIN) this.#isOff = false;
    if (this.#isOff === wasOff) return;
    if (this.#isOff)
      this.#log.warn(
        { aheadSeconds: Math.round(ahead) / 1_000 },
        `this host's clock is ${describeAhead(ahead)} the database's: work uses the database's time, but certificates and logs use this host's; synchronise both with NTP`,
      );
    else this.#log.info({}, "this host's clock agrees with the database's again");
  }
}

const describeAhead = (ahead: number): string =>
  `${describeDuration(seconds(Math.round(Math.abs(ahead) / 1_000)))} ${ahead < 0 ? "behind" : "ahead of"}`;

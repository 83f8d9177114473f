import type { CallContext } from "../../capabilities/call.ts";
import { AppError, StepFailure } from "../../kernel/errors.ts";
import type { Thing } from "../../kernel/lifecycle.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, milliseconds, seconds } from "../../kernel/time/duration.ts";
import type { ClaimedWork } from "../../store/lifecycle/work.ts";
import type { LeaseStream } from "./lease-stream.ts";

/** How long we ourselves trust a lease. Renewed three times as often. */
export const LEASE: Duration = seconds(12);
/** No device call lasts longer. */
export const LONGEST_CALL: Duration = seconds(10);
/** A process may be late to notice that the time of a chunk is over; nobody else is to touch the device meanwhile. */
const CHUNK_MARGIN: Duration = seconds(1);

/** Tests shorten them. */
export interface LeaseTimes {
  /** How long we ourselves trust a lease. */
  readonly own: Duration;
  /** No device call lasts longer, unless it is a chunk of a stream. */
  readonly longestCall: Duration;
}

export const STOCK_LEASE: LeaseTimes = { own: LEASE, longestCall: LONGEST_CALL };

/** In the database a lease lasts longer than for its owner: a takeover starts only after the last call must have ended. */
export const inDatabase = ({ own, longestCall }: LeaseTimes): Duration => milliseconds(own + longestCall);

/** A request that is on its way when its pass is interrupted gets so long to be answered: what was cut off may be obeyed all the same. */
const LAST_ANSWER: Duration = seconds(1);

/**
 * Our right to work on one thing. It counts on the monotonic clock from before the claim was sent, so that a process that
 * was stopped for a while finds its leases over, whatever its timers say.
 */
export class Lease {
  readonly work: ClaimedWork;
  readonly #clock: Clock;
  readonly #times: LeaseTimes;
  readonly #over = new AbortController();
  #interruption: AppError | undefined;
  /** Since when its handler has been at work, on the monotonic clock; never, while it is not. */
  handlingSince = Number.POSITIVE_INFINITY;
  /** The thing of the pass under way, as it was loaded. */
  thing: Thing | undefined;
  /** As what the pass before wrote has left it, where that is known: it need not be loaded again. */
  nextThing: Thing | undefined;
  /** A device call that goes on between two passes. */
  stream: LeaseStream | undefined;
  /** Its renewal under way, if there is one. */
  renewal: Promise<unknown> | undefined;
  #validUntil: number;
  #longestCall: Duration;
  #ends: AbortSignal | undefined;

  constructor(work: ClaimedWork, clock: Clock, askedAt: number, times: LeaseTimes = STOCK_LEASE) {
    this.work = work;
    this.#clock = clock;
    this.#times = times;
    this.#longestCall = times.longestCall;
    this.#validUntil = askedAt + times.own;
  }

  /** How long it lasts in the database: until it is over for us, and everything that we may have sent before is over as well. */
  get inDatabase(): Duration {
    return inDatabase({ own: this.#times.own, longestCall: this.#longestCall });
  }

  /** From the next renewal on it covers such a chunk. */
  cover(longestChunk: Duration): void {
    this.#longestCall = milliseconds(Math.max(this.#longestCall, longestChunk + CHUNK_MARGIN));
  }

  /** That the pass under it is to come to an end, and to nothing: the lease is lost, or somebody asked for something else. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get remaining(): number {
    return this.#validUntil - this.#clock.monotonic();
  }

  renewed(askedAt: number): void {
    this.#validUntil = askedAt + this.#times.own;
  }

  lose(): void {
    this.#validUntil = 0;
    this.#over.abort(new StepFailure("stopped", "the lease is lost; another replica goes on"));
  }

  /** Before the lease is released: the replica that claims next must not find us sending. */
  async endStream(reason: Error): Promise<void> {
    await this.stream?.stop(reason);
    this.stream = undefined;
  }

  /** Ends the pass and not the lease, which is ours until the pass has come to its end. No request leaves for a device any more. */
  interrupt(why: string): void {
    if (this.#interruption !== undefined) return;
    const reason = new AppError("cancelled", why);
    this.#interruption = reason;
    setTimeout(() => this.#over.abort(reason), LAST_ANSWER).unref();
  }

  /** The frame for device calls under this lease. */
  callContext(stop: AbortSignal, mayBegin: () => boolean = () => true): CallContext {
    this.#ends ??= AbortSignal.any([stop, this.#over.signal]); // once for all passes under the lease: it is dear
    return {
      signal: this.#ends,
      mayBegin,
      subject: `${this.work.kind} ${this.work.id}`,
      mayTouchDevice: (wanted) => {
        if (this.#interruption !== undefined) {
          this.#over.abort(this.#interruption);
          throw new StepFailure("stopped", this.#interruption.message);
        }
        const left = Math.floor(this.remaining); // whole ones: that is all that timers take
        if (left <= 0) {
          this.lose();
          throw new StepFailure(
            "stopped",
            "the lease is over, so the device must not be touched; another replica goes on",
          );
        }
        return milliseconds(Math.min(wanted, this.#times.longestCall, left));
      },
    };
  }
}

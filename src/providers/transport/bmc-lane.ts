import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { SignInRejections, SignInRule } from "../../capabilities/sign-in-ledger.ts";
import { StepFailure } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, milliseconds, minutes, seconds } from "../../kernel/time/duration.ts";
import { Breaker, type BreakerOptions, type Why } from "./breaker.ts";
import { SignInGuard, type SignInStop } from "./sign-in-guard.ts";

export interface LaneOptions extends BreakerOptions, SignInRule {
  /** Requests under way at once; most BMCs are slow beyond two. */
  readonly concurrency: number;
  readonly queueLimit: number;
  /** Pause after the first transport failure; doubles with each further one. */
  readonly backOff: Duration;
  /** A pause longer than this is answered with "later" instead of being waited for. */
  readonly longestPause: Duration;
}

/** How a request ended, as far as the lane learns from it. */
export type Settlement =
  /** The BMC answered, whatever it said. */
  | {
      readonly kind: "answered";
      readonly signedIn?: boolean;
      /** What all replicas know of these credentials since. */
      readonly shared?: SignInRejections | undefined;
      /** It asked to be left alone: for how long, and in which words. */
      readonly pause?: { readonly ms: number; readonly why: Why };
    }
  | { readonly kind: "unreachable"; readonly why: Why }
  /** Says nothing about the BMC: cancelled, fenced, or cut short by the lease. */
  | { readonly kind: "inconclusive" };

export interface Ticket {
  /** Present when the request carries a user name and password, rather than a session that has been accepted. */
  readonly signInDigest: string | undefined;
  readonly signal: AbortSignal;
}

interface Waiting extends Ticket {
  readonly admit: () => void;
  readonly refuse: (failure: Error) => void;
}

/**
 * A BMC that starts may reject credentials that are right. It is left alone for so long after each rejection, and the one after that
 * counts as at any time: the flash may have reset the account, and who goes on trying locks it.
 */
const STARTING_PAUSES: readonly Duration[] = [seconds(15), minutes(2)];

interface StartingPause {
  readonly digest: string;
  readonly why: Why;
  readonly until: number;
}

/** All that we do with one BMC, so that one bad BMC never slows another: its slots, queue, back-off, breaker and guard. */
export class BmcLane {
  readonly #name: string;
  readonly #options: LaneOptions;
  readonly #clock: Clock;
  readonly #breaker: Breaker;
  readonly #guard: SignInGuard;
  #waiting: Waiting[] = [];
  #inFlight = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #pausedBecause: Why | undefined;
  #pauseTimer: NodeJS.Timeout | undefined;
  #restartsUntil = Number.NEGATIVE_INFINITY;
  /** Rejections in a row while it was to restart. */
  #startingRejections = 0;
  #startingPause: StartingPause | undefined;
  lastUsed: number;

  constructor(name: string, options: LaneOptions, clock: Clock) {
    this.#name = name;
    this.#options = options;
    this.#clock = clock;
    this.#breaker = new Breaker(options);
    this.#guard = new SignInGuard(options);
    this.lastUsed = clock.monotonic();
  }

  get isIdle(): boolean {
    return this.#inFlight === 0 && this.#waiting.length === 0;
  }

  /** Forgetting a lane that keeps us from locking an account would allow the next attempt. */
  get mustBeKept(): boolean {
    const monotonic = this.#clock.monotonic();
    return !this.isIdle || monotonic < this.#restartsUntil || this.#guard.isStopping(monotonic);
  }

  /** While the BMC starts, it may reject credentials that are right; not for ever, however often it is expected to restart. */
  get #excusesRejections(): boolean {
    return this.#startingRejections <= STARTING_PAUSES.length && this.#clock.monotonic() < this.#restartsUntil;
  }

  /** Expected twice: until the later of the two ends. */
  expectRestart(within: Duration): void {
    this.#restartsUntil = Math.max(this.#restartsUntil, this.#clock.monotonic() + within);
  }

  get status(): {
    readonly breaker: "closed" | "open" | "half_open";
    readonly inFlight: number;
    readonly waiting: number;
  } {
    return {
      breaker: this.#breaker.state(this.#clock.monotonic()),
      inFlight: this.#inFlight,
      waiting: this.#waiting.length,
    };
  }

  /** Resolves when the request may leave; `settle` must follow. */
  enter(ticket: Ticket): Promise<void> {
    this.lastUsed = this.#clock.monotonic();
    return new Promise((resolve, reject) => {
      if (ticket.signal.aborted) return reject(stopped(this.#name, ticket.signal));
      if (this.#waiting.length >= this.#options.queueLimit) return reject(this.#queueFull());
      const onAbort = () => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting);
        reject(stopped(this.#name, ticket.signal));
      };
      const leave = () => ticket.signal.removeEventListener("abort", onAbort);
      const waiting: Waiting = {
        ...ticket,
        admit: () => {
          leave();
          resolve();
        },
        refuse: (failure) => {
          leave();
          reject(failure);
        },
      };
      ticket.signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(waiting);
      this.#admit();
    });
  }

  settle(ticket: Ticket, end: Settlement): void {
    const now = this.#clock.now();
    const monotonic = this.#clock.monotonic();
    this.lastUsed = monotonic;
    this.#inFlight -= 1;
    if (ticket.signInDigest !== undefined) {
      const { signedIn, shared } = end.kind === "answered" ? end : {};
      this.#guard.end(ticket.signInDigest, { accepted: signedIn, shared }, now, monotonic);
      if (signedIn === true) this.#startingRejections = 0;
    }
    if (end.kind === "answered") {
      this.#breaker.succeeded();
      // What a BMC asks for is granted within reason: an hour would look like an outage.
      this.#pausedUntil = monotonic + Math.min(end.pause?.ms ?? 0, this.#options.openForMax);
      this.#pausedBecause = end.pause?.why;
    } else if (end.kind === "unreachable") {
      this.#breaker.failed(monotonic, end.why);
      const pause = this.#options.backOff * 2 ** (this.#breaker.failuresInARow - 1);
      this.#pausedUntil = monotonic + Math.min(pause, this.#options.longestPause);
    }
    this.#admit();
  }

  /** Before it is settled. Whoever expects no restart need not know why. */
  noteRejected(digest: string, why: Why): void {
    if (!this.#excusesRejections) return;
    const pause = STARTING_PAUSES[this.#startingRejections] ?? 0;
    this.#startingPause = { digest, why, until: this.#clock.monotonic() + pause };
    this.#startingRejections += 1;
  }

  /** Whether it must be found out first what other replicas have met with, trying these credentials. */
  mustAskOthers(digest: string): boolean {
    return !this.#excusesRejections && !this.#guard.wasJustProven(digest, this.#clock.monotonic());
  }

  learn(digest: string, shared: SignInRejections | undefined): void {
    this.#guard.learn(digest, shared, this.#clock.monotonic());
  }

  /** Whether others may go by a rejection that has been proven wrong just now. */
  mustTellOthers(digest: string): boolean {
    return this.#excusesRejections || this.#guard.hasRejections(digest);
  }

  /** Why these credentials are not tried now; `undefined` when they may be. */
  stopFor(digest: string): DeviceFailure | undefined {
    const monotonic = this.#clock.monotonic();
    if (this.#excusesRejections) {
      const pause = this.#startingPause;
      if (pause?.digest !== digest || monotonic >= pause.until) return undefined;
      return saidAgain(pause.why, milliseconds(pause.until - monotonic));
    }
    const stop = this.#guard.stop(digest, monotonic);
    return stop && this.#signInStopped(stop);
  }

  /** Whether others know of what keeps these credentials from being tried, so that they can lift it. */
  isStoppedByAll(digest: string): boolean {
    return !this.#excusesRejections && this.#guard.stop(digest, this.#clock.monotonic())?.isShared === true;
  }

  close(why: Error): void {
    clearTimeout(this.#pauseTimer);
    this.#refuseAll(() => why);
  }

  #admit(): void {
    clearTimeout(this.#pauseTimer);
    while (this.#waiting.length > 0) {
      const monotonic = this.#clock.monotonic();
      const state = this.#breaker.state(monotonic);
      if (state === "open") {
        this.#refuseAll(() => this.#breakerOpen(monotonic));
        return;
      }
      if (this.#inFlight >= (state === "half_open" ? 1 : this.#options.concurrency)) return;
      // The breaker's own time already was the pause.
      const pause = state === "half_open" ? 0 : this.#pausedUntil - monotonic;
      if (pause > this.#options.longestPause) {
        this.#refuseAll(() => this.#pausing(pause));
        return;
      }
      if (pause > 0) {
        this.#pauseTimer = setTimeout(() => this.#admit(), Math.ceil(pause));
        return;
      }
      this.#refuseStopped();
      const next = this.#waiting.find(
        ({ signInDigest }) => signInDigest === undefined || !this.#guard.mustWait(signInDigest),
      );
      if (next === undefined) return;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#inFlight += 1;
      if (next.signInDigest !== undefined) this.#guard.begin(next.signInDigest);
      next.admit();
    }
  }

  #refuseStopped(): void {
    for (const waiting of [...this.#waiting]) {
      const failure = waiting.signInDigest === undefined ? undefined : this.stopFor(waiting.signInDigest);
      if (failure === undefined) continue;
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
      waiting.refuse(failure);
    }
  }

  #refuseAll(failure: () => Error): void {
    const all = this.#waiting;
    this.#waiting = [];
    for (const waiting of all) waiting.refuse(failure());
  }

  // Messages become reasons that are shown and journaled whenever they change. So they hold nothing that differs from look to
  // look or from replica to replica, and one that was not sent fails in the words of the last that was: when it is tried again is
  // told by `retryAfterMs` alone.

  #signInStopped({ since, rest }: SignInStop): DeviceFailure {
    return new DeviceFailure(
      "sign_in_stopped",
      "bmc",
      `wrong credentials: ${this.#name} has rejected them since ${since.toISOString()}; they are tried only rarely, so that ` +
        "the account is not locked. Correct the BMC credentials: changed ones are tried at once",
      { retryAfterMs: rest, facts: { since: since.toISOString() } },
    );
  }

  #breakerOpen(monotonic: number): DeviceFailure {
    const silent: Why = { code: "unreachable", message: `${this.#name} does not answer`, facts: {} };
    const { why, until } = this.#breaker.opening ?? { why: silent, until: monotonic };
    return saidAgain(why, milliseconds(until - monotonic));
  }

  #pausing(pause: number): DeviceFailure {
    const asked: Why = { code: "busy", message: `${this.#name} asks to wait`, facts: {} };
    return saidAgain(this.#pausedBecause ?? asked, milliseconds(pause));
  }

  #queueFull(): DeviceFailure {
    return new DeviceFailure(
      "busy",
      "bmc",
      `${this.#options.queueLimit} requests to ${this.#name} are already waiting; try again later`,
    );
  }
}

const saidAgain = ({ code, message, facts }: Why, retryAfterMs: Duration): DeviceFailure =>
  new DeviceFailure(code, "bmc", message, { retryAfterMs, facts });

export function stopped(name: string, signal: AbortSignal): StepFailure {
  return new StepFailure("stopped", `work on ${name} was stopped before it answered`, { cause: signal.reason });
}

import type { Duration } from "../kernel/duration.ts";

export interface SignInGuardOptions {
  /** Rejections in a row of the same credentials before they are no longer tried. BMCs commonly lock an account at 3 to 5. */
  readonly rejectionsToStop: number;
  /** After this, one more try; they may have been put right on the BMC. */
  readonly coolDown: Duration;
}

interface Tried {
  rejections: number;
  /** Accepted last time. Unproven credentials are tried one at a time, so that parallel requests cannot lock the account. */
  proven: boolean;
  stoppedAt: Date | undefined;
  stoppedUntil: number;
  inFlight: number;
}

export interface SignInStop {
  readonly rejections: number;
  readonly since: Date;
  readonly until: number;
}

// Enough for an old and a new password of a few accounts; more would be somebody guessing.
const CREDENTIALS_PER_BMC = 8;

/** Keeps us from locking a BMC's account by trying wrong credentials again and again. Knows digests, never passwords. */
export class SignInGuard {
  readonly #options: SignInGuardOptions;
  readonly #tried = new Map<string, Tried>();

  constructor(options: SignInGuardOptions) {
    this.#options = options;
  }

  stop(digest: string, monotonic: number): SignInStop | undefined {
    const tried = this.#tried.get(digest);
    if (tried?.stoppedAt === undefined || monotonic >= tried.stoppedUntil) return undefined;
    return { rejections: tried.rejections, since: tried.stoppedAt, until: tried.stoppedUntil };
  }

  /** Whether somebody else is finding out about these credentials right now. */
  mustWait(digest: string): boolean {
    const tried = this.#tried.get(digest);
    return tried !== undefined && !tried.proven && tried.inFlight > 0;
  }

  begin(digest: string): void {
    this.#of(digest).inFlight += 1;
  }

  /** `undefined`: the attempt ended without an answer about the credentials. */
  end(digest: string, accepted: boolean | undefined, now: Date, monotonic: number): void {
    const tried = this.#of(digest);
    tried.inFlight = Math.max(0, tried.inFlight - 1);
    if (accepted === true) {
      Object.assign(tried, { rejections: 0, proven: true, stoppedAt: undefined, stoppedUntil: 0 });
    } else if (accepted === false) {
      tried.rejections += 1;
      tried.proven = false;
      if (tried.rejections < this.#options.rejectionsToStop) return;
      tried.stoppedAt ??= now;
      tried.stoppedUntil = monotonic + this.#options.coolDown;
    }
  }

  isStopping(monotonic: number): boolean {
    return [...this.#tried.values()].some((tried) => tried.stoppedAt !== undefined && monotonic < tried.stoppedUntil);
  }

  forgive(): void {
    for (const tried of this.#tried.values())
      Object.assign(tried, { rejections: 0, stoppedAt: undefined, stoppedUntil: 0 });
  }

  #of(digest: string): Tried {
    let tried = this.#tried.get(digest);
    if (tried === undefined) {
      tried = { rejections: 0, proven: false, stoppedAt: undefined, stoppedUntil: 0, inFlight: 0 };
      this.#tried.set(digest, tried);
      this.#dropOldest();
    }
    return tried;
  }

  #dropOldest(): void {
    if (this.#tried.size <= CREDENTIALS_PER_BMC) return;
    for (const [digest, tried] of this.#tried) {
      if (tried.inFlight > 0) continue;
      this.#tried.delete(digest);
      return;
    }
  }
}

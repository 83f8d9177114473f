import type { SignInRejections, SignInRule } from "../../capabilities/sign-in-ledger.ts";
import { type Duration, milliseconds, seconds } from "../../kernel/time/duration.ts";

interface Tried {
  rejections: number;
  /** The first of the rejections in a row. */
  rejectedSince: Date | undefined;
  stoppedUntil: number;
  /** All replicas know of the rejections: they are forgotten when the others forget them. */
  isShared: boolean;
  /** When they were accepted last. Unproven credentials are tried one at a time, so that parallel requests cannot lock the account. */
  provenAt: number | undefined;
  inFlight: number;
}

export interface SignInStop {
  readonly since: Date;
  readonly rest: Duration;
  readonly isShared: boolean;
}

/** How an attempt ended: what it says of the credentials, and what all replicas know of them since, where that was learnt. */
export interface SignInEnd {
  readonly accepted: boolean | undefined;
  readonly shared?: SignInRejections | undefined;
}

// Enough for an old and a new password of a few accounts; more would be somebody guessing.
const CREDENTIALS_PER_BMC = 8;
/** Where every request carries the password, those right after an accepted one need not ask what others have met with. */
const PROVEN_FOR = seconds(10);

/** Keeps us from locking a BMC's account by trying wrong credentials again and again. Knows digests, never passwords. */
export class SignInGuard {
  readonly #rule: SignInRule;
  readonly #tried = new Map<string, Tried>();

  constructor(rule: SignInRule) {
    this.#rule = rule;
  }

  stop(digest: string, monotonic: number): SignInStop | undefined {
    const tried = this.#tried.get(digest);
    if (tried?.rejectedSince === undefined || monotonic >= tried.stoppedUntil) return undefined;
    const { rejectedSince: since, isShared, stoppedUntil } = tried;
    return { since, rest: milliseconds(stoppedUntil - monotonic), isShared };
  }

  /** Whether somebody else is finding out about these credentials right now. */
  mustWait(digest: string): boolean {
    const tried = this.#tried.get(digest);
    return tried !== undefined && tried.provenAt === undefined && tried.inFlight > 0;
  }

  wasJustProven(digest: string, monotonic: number): boolean {
    const provenAt = this.#tried.get(digest)?.provenAt;
    return provenAt !== undefined && monotonic - provenAt < PROVEN_FOR;
  }

  hasRejections(digest: string): boolean {
    return (this.#tried.get(digest)?.rejections ?? 0) > 0;
  }

  begin(digest: string): void {
    this.#of(digest).inFlight += 1;
  }

  /** What all replicas together have met with, which counts more than what we have seen ourselves. */
  learn(digest: string, shared: SignInRejections | undefined, monotonic: number): void {
    this.#note(digest, shared, monotonic, true);
  }

  #note(digest: string, known: SignInRejections | undefined, monotonic: number, isShared: boolean): void {
    const tried = this.#of(digest);
    tried.rejections = known?.count ?? 0;
    tried.rejectedSince = known?.since;
    tried.stoppedUntil = monotonic + (known?.rest ?? 0);
    tried.isShared = isShared;
  }

  end(digest: string, { accepted, shared }: SignInEnd, now: Date, monotonic: number): void {
    const tried = this.#of(digest);
    tried.inFlight = Math.max(0, tried.inFlight - 1);
    if (accepted === true) {
      Object.assign(tried, { rejections: 0, rejectedSince: undefined, stoppedUntil: 0, provenAt: monotonic });
    } else if (accepted === false) {
      tried.provenAt = undefined;
      const count = tried.rejections + 1;
      const rest = count >= this.#rule.rejectionsToStop ? this.#rule.coolDown : milliseconds(0);
      const own = { count, since: tried.rejectedSince ?? now, rest };
      this.#note(digest, shared ?? own, monotonic, shared !== undefined);
    }
  }

  isStopping(monotonic: number): boolean {
    return [...this.#tried.keys()].some((digest) => this.stop(digest, monotonic) !== undefined);
  }

  #of(digest: string): Tried {
    let tried = this.#tried.get(digest);
    if (tried === undefined) {
      const nothing = { rejections: 0, rejectedSince: undefined, stoppedUntil: 0, isShared: false };
      tried = { ...nothing, provenAt: undefined, inFlight: 0 };
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

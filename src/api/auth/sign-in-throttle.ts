import { createHash } from "node:crypto";
import { decodeJwt } from "jose";
import { AppError } from "../../kernel/errors.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { minutes } from "../../kernel/time/duration.ts";
import { RateLimiter } from "../transport/limits/rate-limiter.ts";

export interface ThrottleRules {
  /** Failed sign-ins a minute, from one address; under one name there, half of them. */
  readonly failedSignIns: number;
  /** The group of addresses that the address counts as; undefined: it is not counted. */
  readonly countedAs: (address: string) => string | undefined;
  readonly clock: Pick<Clock, "monotonic">;
  /** Told of each sign-in that was not tried. */
  readonly refused: (by: "address" | "name", address: string | null) => void;
}

/** Credentials that somebody signs in with. */
interface Attempt {
  readonly address: string | null;
  readonly bearer: string;
}

/** Of credentials that were good, and of those that were not. */
const MOST_KNOWN = 20_000;

/**
 * Holds back who guesses. Each failed sign-in counts for its address, and for the name that it claims at that address; above the limit
 * credentials are not even tried. Anybody can claim a name, so that it is never counted for other addresses: whoever fails under it on purpose
 * locks its owner out nowhere else. The limit of a name is the lower one: who guesses under one name does not use up what others at the same
 * address have. Credentials that were good before are tried all the same; and the same bad ones again are no guess: a program with an old token
 * does not lock out others at its address.
 */
export class SignInThrottle {
  readonly #rules: ThrottleRules;
  readonly #ofAddresses: RateLimiter;
  readonly #ofNames: RateLimiter;
  /** Digests, in the order of their last use. */
  readonly #good = new Set<string>();
  readonly #bad = new Set<string>();

  constructor(rules: ThrottleRules) {
    this.#rules = rules;
    const { failedSignIns, clock } = rules;
    const limiter = (burst: number) => new RateLimiter({ perSecond: (burst * 1_000) / minutes(1), burst, clock });
    this.#ofAddresses = limiter(failedSignIns);
    this.#ofNames = limiter(Math.ceil(failedSignIns / 2));
  }

  /** What `identify` answers, unless too many have failed; then throws `exhausted` without asking. */
  async guard<T>({ address, bearer }: Attempt, identify: () => Promise<T>): Promise<T> {
    const digest = createHash("sha256").update(bearer).digest("base64");
    const from = address === null ? undefined : this.#rules.countedAs(address);
    const claimed = claimedName(bearer);
    const name = from === undefined || claimed === undefined ? undefined : `${from} ${claimed}`;
    if (!this.#good.has(digest)) this.#admit({ from, name, address });
    try {
      const identity = await identify();
      remember(this.#good, digest);
      return identity;
    } catch (error) {
      // A database that is away proves nothing.
      if (error instanceof AppError && error.kind === "unauthenticated") {
        this.#good.delete(digest);
        if (!this.#bad.has(digest)) this.#count(from, name);
        remember(this.#bad, digest);
      }
      throw error;
    }
  }

  /** The most that failed of late from one address. */
  fullest(): number {
    return Math.max(this.#ofAddresses.fullest(), this.#ofNames.fullest());
  }

  #count(from: string | undefined, name: string | undefined): void {
    if (from !== undefined) this.#ofAddresses.take(from);
    if (name !== undefined) this.#ofNames.take(name);
  }

  #admit({
    from,
    name,
    address,
  }: {
    from: string | undefined;
    name: string | undefined;
    address: string | null;
  }): void {
    const byAddress = from === undefined ? undefined : this.#ofAddresses.look(from);
    const byName = name === undefined ? undefined : this.#ofNames.look(name);
    const wait = Math.max(byAddress ?? 0, byName ?? 0);
    if (wait === 0) return;
    const by = byAddress === undefined ? "name" : "address";
    this.#rules.refused(by, address);
    const whose = by === "address" ? "from this address" : "under this name from this address";
    throw new AppError(
      "exhausted",
      `limit reached: too many sign-ins ${whose} have failed; these credentials were not tried`,
      {
        retryAfterMs: wait,
        next: "call again later, with good credentials; an administrator can raise limits.failed_sign_ins",
      },
    );
  }
}

function remember(digests: Set<string>, digest: string): void {
  digests.delete(digest);
  digests.add(digest);
  const [oldest] = digests;
  if (digests.size > MOST_KNOWN && oldest !== undefined) digests.delete(oldest);
}

const OWN_TOKEN = /^mw_([0-9a-f]{16})_/;

/** Nothing is proven by it: it is whom the credentials pretend to be. */
function claimedName(bearer: string): string | undefined {
  const id = OWN_TOKEN.exec(bearer)?.[1];
  if (id !== undefined) return id;
  try {
    const { sub } = decodeJwt(bearer);
    return sub?.slice(0, 256);
  } catch {
    return undefined; // it claims no name
  }
}

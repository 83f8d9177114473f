import { AppError } from "../../../kernel/errors.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import type { Caller } from "../../../services/call/caller.ts";
import { addressGroup } from "./client-address.ts";
import type { Limit, LimitLedger } from "./limit-ledger.ts";
import { RateLimiter } from "./rate-limiter.ts";

export interface QuotaRules {
  /** A second. */
  readonly requestsPerCaller: number;
  /** A second, from where nobody has signed in. */
  readonly requestsPerAddress: number;
  readonly streamsPerCaller: number;
  /** Of those that nobody has signed in for. */
  readonly streamsPerAddress: number;
  readonly isExempt: (address: string) => boolean;
}

type Who = Pick<Caller, "name" | "address">;

/** So many seconds' worth of requests may come at once: people and their scripts come in bursts. */
const BURST_SECONDS = 5;

/** What one caller, or one address where nobody has signed in, may ask for: requests a second, and streams at the same time. */
export class CallQuotas {
  readonly #rules: QuotaRules;
  readonly #ledger: LimitLedger;
  readonly #ofCallers: RateLimiter;
  readonly #ofAddresses: RateLimiter;
  readonly #streams = { streams_per_caller: new Map<string, number>(), streams_per_address: new Map<string, number>() };

  constructor(rules: QuotaRules, ledger: LimitLedger, clock: Pick<Clock, "monotonic">) {
    this.#rules = rules;
    this.#ledger = ledger;
    const limiter = (perSecond: number) => new RateLimiter({ perSecond, burst: perSecond * BURST_SECONDS, clock });
    this.#ofCallers = limiter(rules.requestsPerCaller);
    this.#ofAddresses = limiter(rules.requestsPerAddress);
    ledger.show("requests_per_caller", this.#ofCallers.burst, () => this.#ofCallers.fullest());
    ledger.show("requests_per_address", this.#ofAddresses.burst, () => this.#ofAddresses.fullest());
    for (const limit of ["streams_per_caller", "streams_per_address"] as const)
      ledger.show(limit, this.#mostStreams(limit), () => Math.max(0, ...this.#streams[limit].values()));
  }

  /** Counts a request; throws `exhausted` where there are too many. */
  request({ name, address }: Who): void {
    const [limit, limiter, key] =
      name === null
        ? (["requests_per_address", this.#ofAddresses, this.#counted(address)] as const)
        : (["requests_per_caller", this.#ofCallers, name] as const);
    const wait = key === undefined ? undefined : limiter.take(key);
    if (wait === undefined) return;
    this.#ledger.refuse(limit, { caller: name, address });
    const perSecond = name === null ? this.#rules.requestsPerAddress : this.#rules.requestsPerCaller;
    throw exhausted(
      limit,
      `more than ${perSecond} requests a second from ${name === null ? "this address" : `'${name}'`}`,
      wait,
    );
  }

  /** Counts a stream until the answer is called; throws `exhausted` where there are too many. */
  stream({ name, address }: Who): () => void {
    const limit = name === null ? "streams_per_address" : "streams_per_caller";
    const key = name ?? this.#counted(address);
    if (key === undefined) return () => {};
    const open = this.#streams[limit];
    const count = open.get(key) ?? 0;
    const most = this.#mostStreams(limit);
    if (count >= most) {
      this.#ledger.refuse(limit, { caller: name, address });
      throw exhausted(
        limit,
        `${most} streams are open from ${name === null ? "this address" : `'${name}'`} already`,
        STREAM_WAIT,
      );
    }
    open.set(key, count + 1);
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      const left = (open.get(key) ?? 1) - 1;
      if (left === 0) open.delete(key);
      else open.set(key, left);
    };
  }

  /** Of whom nobody has signed in for; undefined: not at all. */
  #counted(address: string | null): string | undefined {
    return address === null || this.#rules.isExempt(address) ? undefined : addressGroup(address);
  }

  #mostStreams(limit: "streams_per_caller" | "streams_per_address"): number {
    return limit === "streams_per_caller" ? this.#rules.streamsPerCaller : this.#rules.streamsPerAddress;
  }
}

/** Nobody knows when another stream ends. */
const STREAM_WAIT = 5_000;

const exhausted = (limit: Limit, what: string, wait: number): AppError =>
  new AppError("exhausted", `limit reached: ${what}`, {
    retryAfterMs: wait,
    next: `call again later; an administrator can raise limits.${limit}`,
  });

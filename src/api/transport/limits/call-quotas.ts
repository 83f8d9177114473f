import { AppError } from "../../../kernel/errors.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import type { Caller } from "../../../services/call/caller.ts";
import { refusedTo } from "../../auth/refused-caller.ts";
import { addressGroup } from "./client-address.ts";
import type { Limit, LimitLedger } from "./limit-ledger.ts";
import { RateLimiter } from "./rate-limiter.ts";

export interface QuotaRules {
  /** A second. */
  readonly requestsPerCaller: number;
  /** A second, from where nobody has signed in. */
  readonly requestsPerAddress: number;
  /** Calls that are no streams, at the same time. */
  readonly callsPerCaller: number;
  readonly streamsPerCaller: number;
  /** Of those that nobody has signed in for. */
  readonly streamsPerAddress: number;
  readonly isExempt: (address: string) => boolean;
}

type Who = Pick<Caller, "name" | "address">;

/** So many seconds' worth of requests may come at once: people and their scripts come in bursts. */
const BURST_SECONDS = 5;

/** What is counted as long as it is open. */
const HELD = ["calls_per_caller", "streams_per_caller", "streams_per_address"] as const;
type Held = (typeof HELD)[number];

/**
 * What one caller, or one address where nobody has signed in, may ask for: requests a second, and streams and other calls at the same time.
 * Calls without a sign-in are short, and bounded by their rate alone.
 */
export class CallQuotas {
  readonly #rules: QuotaRules;
  readonly #ledger: LimitLedger;
  readonly #ofCallers: RateLimiter;
  readonly #ofAddresses: RateLimiter;
  readonly #open: Readonly<Record<Held, Map<string, number>>> = {
    calls_per_caller: new Map(),
    streams_per_caller: new Map(),
    streams_per_address: new Map(),
  };

  constructor(rules: QuotaRules, ledger: LimitLedger, clock: Pick<Clock, "monotonic">) {
    this.#rules = rules;
    this.#ledger = ledger;
    const limiter = (perSecond: number) => new RateLimiter({ perSecond, burst: perSecond * BURST_SECONDS, clock });
    this.#ofCallers = limiter(rules.requestsPerCaller);
    this.#ofAddresses = limiter(rules.requestsPerAddress);
    ledger.show("requests_per_caller", this.#ofCallers.burst, () => this.#ofCallers.fullest());
    ledger.show("requests_per_address", this.#ofAddresses.burst, () => this.#ofAddresses.fullest());
    for (const limit of HELD) ledger.show(limit, this.#most(limit), () => fullestOf(this.#open[limit]));
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
    throw refusedTo(exhausted(limit, `more than ${perSecond} requests a second from ${whoseIs(name)}`, wait), name);
  }

  /** Counts a call that is no stream until the answer is called; throws `exhausted` where there are too many. */
  call(who: Who): () => void {
    return who.name === null ? () => {} : this.#hold("calls_per_caller", who, who.name);
  }

  /** The same for a stream. */
  stream(who: Who): () => void {
    const { name, address } = who;
    if (name !== null) return this.#hold("streams_per_caller", who, name);
    const key = this.#counted(address);
    return key === undefined ? () => {} : this.#hold("streams_per_address", who, key);
  }

  #hold(limit: Held, { name, address }: Who, key: string): () => void {
    const open = this.#open[limit];
    const count = open.get(key) ?? 0;
    const most = this.#most(limit);
    if (count >= most) {
      this.#ledger.refuse(limit, { caller: name, address });
      const { what, wait } = REFUSED[limit];
      throw refusedTo(exhausted(limit, `${most} ${what} from ${whoseIs(name)} already`, wait), name);
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

  #most(limit: Held): number {
    const { callsPerCaller, streamsPerCaller, streamsPerAddress } = this.#rules;
    return {
      calls_per_caller: callsPerCaller,
      streams_per_caller: streamsPerCaller,
      streams_per_address: streamsPerAddress,
    }[limit];
  }
}

function fullestOf(open: ReadonlyMap<string, number>): number {
  let most = 0;
  for (const count of open.values()) most = Math.max(most, count);
  return most;
}

/** Nobody knows when another one ends; calls are shorter than streams. */
const REFUSED: Readonly<Record<Held, { readonly what: string; readonly wait: number }>> = {
  calls_per_caller: { what: "calls are under way", wait: 1_000 },
  streams_per_caller: { what: "streams are open", wait: 5_000 },
  streams_per_address: { what: "streams are open", wait: 5_000 },
};

const whoseIs = (name: string | null): string => (name === null ? "this address" : `'${name}'`);

const exhausted = (limit: Limit, what: string, wait: number): AppError =>
  new AppError("exhausted", `limit reached: ${what}`, {
    retryAfterMs: wait,
    next: `call again later; an administrator can raise limits.${limit}`,
  });

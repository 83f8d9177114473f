import { setTimeout as pause } from "node:timers/promises";
import type { Log } from "../kernel/log.ts";
import { namedList } from "../kernel/named-list.ts";
import type { Clock } from "../kernel/time/clock.ts";
import { hours, seconds } from "../kernel/time/duration.ts";
import { type MaxAge, noteUses, tokensThatAge } from "../store/access/tokens.ts";
import type { Queryable } from "../store/postgres/database.ts";
import type { Collect } from "../telemetry/metrics.ts";

/** Their owners have this long to take another. */
const WARNED_AHEAD = hours(14 * 24);
const WARN_EVERY = hours(24);
const WRITE_EVERY = seconds(20);

/** Which tokens were used, until that is written: no call waits for it. */
export class TokenUses {
  readonly #clock: Clock;
  #last = new Map<string, Date>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(tokenId: string): void {
    this.#last.set(tokenId, this.#clock.now());
  }

  /** What could not be written is kept for the next time. */
  async write(db: Queryable): Promise<void> {
    const written = this.#last;
    if (written.size === 0) return;
    this.#last = new Map();
    try {
      await noteUses(db, written);
    } catch (error) {
      this.#last = new Map([...written, ...this.#last]);
      throw error;
    }
  }
}

export interface TokenUpkeep {
  readonly db: Queryable;
  readonly log: Log;
  readonly clock: Clock;
  readonly uses: TokenUses;
  readonly maxAge: MaxAge;
}

/** Writes when tokens were used last, and warns once a day of those that will soon be too old. */
export async function runTokenUpkeep(options: TokenUpkeep, signal: AbortSignal): Promise<void> {
  const { db, log, clock, uses } = options;
  let warnAt = 0;
  const upkeep = async () => {
    try {
      await uses.write(db);
      if (clock.monotonic() < warnAt || signal.aborted) return;
      await warnOfAge(options);
      warnAt = clock.monotonic() + WARN_EVERY;
    } catch (error) {
      log.warn({ err: error }, "the use and the age of tokens could not be checked; trying again later");
    }
  };
  while (!signal.aborted) {
    await upkeep();
    await pause(WRITE_EVERY, undefined, { signal, ref: false }).catch(() => undefined);
  }
  await upkeep(); // the listeners are closed before: these are the last
}

export async function warnOfAge({ db, log, clock, maxAge }: Omit<TokenUpkeep, "uses">): Promise<void> {
  const names = await soonTooOld({ db, clock, maxAge });
  if (names.length === 0) return;
  log.warn(
    { tokens: names.length },
    `tokens reach auth.token_max_age within 14 days and end then: ${namedList(names, 10)}; see millwright token list`,
  );
}

function soonTooOld({ db, clock, maxAge }: Pick<TokenUpkeep, "db" | "clock" | "maxAge">): Promise<string[]> {
  const from = clock.now();
  return tokensThatAge(db, { from, to: new Date(from.getTime() + WARNED_AHEAD), maxAge });
}

export const collectTokenAges =
  (of: Pick<TokenUpkeep, "db" | "clock" | "maxAge">): Collect =>
  async () => ({ millwright_tokens_ending_by_age: [{ labels: {}, value: (await soonTooOld(of)).length }] });

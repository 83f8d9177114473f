import { setTimeout as pause } from "node:timers/promises";
import { messageOf } from "../kernel/errors.ts";
import type { Log } from "../kernel/log.ts";
import type { Clock } from "../kernel/time/clock.ts";
import { minutes, seconds } from "../kernel/time/duration.ts";
import {
  countUnsealed,
  findSeal,
  newestSeal,
  type Seal,
  type SealKey,
  sealNext,
} from "../store/lifecycle/seals/journal-seals.ts";
import { headText, isCode } from "../store/lifecycle/seals/seal-chain.ts";
import type { Queryable } from "../store/postgres/database.ts";
import type { Collect, Metrics } from "../telemetry/metrics.ts";

const SEAL_EVERY = seconds(1);
/** More are sealed in several seals; an upgrade finds the whole journal unsealed. */
const ENTRIES_A_SEAL = 5_000;
const LOG_EVERY = minutes(1);

export interface Sealing {
  readonly db: Queryable;
  readonly log: Log;
  readonly clock: Clock;
  readonly sealKey: SealKey;
  readonly metrics: Pick<Metrics, "count">;
}

/**
 * Seals what the journal has come to, each second. Every replica tries; who comes while the newest seal is young leaves it at that, so that
 * one seals at a time, and another goes on at once when it dies. No commit waits for it.
 */
export async function runSealing(options: Sealing, signal: AbortSignal): Promise<void> {
  const { log, clock } = options;
  const seen: Seen = { seal: undefined, isBehind: false, loggedAt: Number.NEGATIVE_INFINITY, logged: 0 };
  let trouble = "";
  while (!signal.aborted) {
    try {
      seen.isBehind = await sealOnce(options, seen);
      if (clock.monotonic() - seen.loggedAt >= LOG_EVERY) logHead(log, clock, seen);
      trouble = "";
    } catch (error) {
      if (messageOf(error) !== trouble)
        log.warn({ err: error }, "the journal could not be sealed; trying again each second");
      trouble = messageOf(error);
      seen.isBehind = false;
    }
    if (!seen.isBehind) await pause(SEAL_EVERY, undefined, { signal, ref: false }).catch(() => undefined);
  }
  seen.seal = await newestSeal(options.db).catch(() => seen.seal);
  logHead(log, clock, seen);
}

/** What this replica knows of the seals, from outside of the database. */
interface Seen {
  seal: Seal | undefined;
  /** There was more than a seal takes. */
  isBehind: boolean;
  loggedAt: number;
  logged: number;
}

/** True when there may be more to seal. */
async function sealOnce({ db, log, clock, sealKey, metrics }: Sealing, seen: Seen): Promise<boolean> {
  const newest = await newestSeal(db);
  if (seen.seal !== undefined && (await isLost(db, seen.seal, newest))) {
    const heads = { seen: headText(seen.seal), now: newest ? headText(newest) : "none" };
    log.error(
      heads,
      "a seal of the journal is gone, or is another one: run millwright audit verify --head with the one that was seen",
    );
    metrics.count("millwright_journal_seals_lost_total", {});
  }
  seen.seal = newest;
  const now = clock.now();
  // A time in the future is that of a clock that was set; waiting for it would leave the journal unsealed.
  const age = newest ? Math.abs(now.getTime() - newest.sealedAt.getTime()) : SEAL_EVERY;
  if (!seen.isBehind && age < SEAL_EVERY / 2) return false;
  const sealed = await sealNext(db, await sealKey(), { now, most: ENTRIES_A_SEAL });
  // Another replica may have made this one: which one counts shows at the next look.
  return sealed?.entries === ENTRIES_A_SEAL;
}

async function isLost(db: Queryable, seen: Seal, newest: Seal | undefined): Promise<boolean> {
  const same = newest?.number === seen.number ? newest : await findSeal(db, seen.number);
  return same === undefined || !isCode(same.mac, seen.mac);
}

/** Logs are kept elsewhere than the database: an older database, or seals made anew, do not match what they say. */
function logHead(log: Log, clock: Clock, seen: Seen): void {
  seen.loggedAt = clock.monotonic();
  if (seen.seal === undefined || seen.seal.number === seen.logged) return;
  log.info({ head: headText(seen.seal), sealedAt: seen.seal.sealedAt }, "the journal is sealed up to here");
  seen.logged = seen.seal.number;
}

export const collectUnsealed =
  (db: Queryable): Collect =>
  async () => {
    const { since } = await countUnsealed(db);
    const waited = since === null ? 0 : Math.max(0, (Date.now() - since.getTime()) / 1_000);
    return { millwright_journal_unsealed_seconds: [{ labels: {}, value: waited }] };
  };

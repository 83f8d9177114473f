import { setTimeout as pause } from "node:timers/promises";
import type { Log } from "../kernel/log.ts";
import { type Duration, hours, minutes } from "../kernel/time/duration.ts";
import { forgetRefusedCalls } from "../store/access/refused-calls.ts";
import { forgetTasks } from "../store/fleet/tasks.ts";
import { forgetFoundByBoot } from "../store/install/found-by-boot.ts";
import { removeOldEntries } from "../store/lifecycle/journal-retention.ts";
import type { SealKey } from "../store/lifecycle/seals/journal-seals.ts";
import type { ThingStores } from "../store/lifecycle/things.ts";
import type { Database } from "../store/postgres/database.ts";
import { forgetKeys } from "../store/postgres/idempotency.ts";
import { forgetWitnesses } from "../store/restore/witness.ts";
import { forgetDocuments } from "../store/run/run-documents.ts";
import { forgetScripts } from "../store/run/script-texts.ts";

const EVERY = hours(1);
/** A replica of an earlier version may still run while replicas are replaced. It removes what this one keeps, and tells watchers less. */
const FIRST_AFTER = minutes(10);
const BATCH = 5_000;
/** Who repeats a call does so within minutes or hours; a key that comes after a week is meant as a new one. */
const KEYS_KEPT_FOR: Duration = hours(7 * 24);

export interface Retention {
  readonly db: Database;
  readonly log: Log;
  /** Of the journal. */
  readonly retention: Duration;
  /** Of the record of refused calls. */
  readonly refusalsKept: Duration;
  /** Signs for the entries that are removed. */
  readonly sealKey: SealKey;
  /** Of machines that only a boot has put on record; absent: they stay. */
  readonly discovered?: { readonly stores: ThingStores; readonly unseenFor: Duration };
}

/** Removes journal entries, idempotency keys, the documents and scripts of runs, refused calls and ended tasks of fleet nodes past their retention, the oldest first and in small bites. */
export async function runRetention(options: Retention, signal: AbortSignal): Promise<void> {
  for (let next = FIRST_AFTER; !signal.aborted; next = EVERY) {
    await pause(next * (0.8 + Math.random() * 0.4), undefined, { signal, ref: false }).catch(() => undefined);
    if (!signal.aborted) await forgetOld(options, signal);
  }
}

export async function forgetOld(
  { db, log, retention, refusalsKept, sealKey, discovered }: Retention,
  signal: AbortSignal,
): Promise<void> {
  const tasks = {
    "journal entries": () => removeOldEntries(db, { retention, most: BATCH, sealKey }),
    "idempotency keys": async () => {
      const removed = await forgetKeys(db, KEYS_KEPT_FOR, BATCH);
      return { examined: removed, removed };
    },
    "documents of runs": async () => {
      const removed = await forgetDocuments(db, retention, BATCH);
      return { examined: removed, removed };
    },
    "scripts of runs": async () => {
      const removed = await forgetScripts(db, retention, BATCH);
      return { examined: removed, removed };
    },
    "refused calls": async () => {
      const removed = await forgetRefusedCalls(db, { keptFor: refusalsKept, most: BATCH });
      return { examined: removed, removed };
    },
    ...(discovered && {
      "nodes that nobody has approved": async () => {
        const { stores, unseenFor } = discovered;
        const removed = await forgetFoundByBoot(db, stores, { unseenFor, most: BATCH });
        return { examined: removed, removed };
      },
    }),
    "tasks of fleet nodes": async () => {
      const removed = await forgetTasks(db, retention, BATCH);
      return { examined: removed, removed };
    },
  };
  await forgetWitnesses(db).catch((err: unknown) =>
    log.warn({ err }, "old witnesses of the database could not be removed"),
  );
  for (const [what, forget] of Object.entries(tasks)) {
    try {
      let total = 0;
      for (let examined = BATCH; examined === BATCH && !signal.aborted; ) {
        const bite = await forget();
        examined = bite.examined;
        total += bite.removed;
      }
      if (total > 0) log.info({ removed: total }, `${what} past their retention were removed`);
    } catch (error) {
      log.warn({ err: error }, `old ${what} could not be removed; trying again later`);
    }
  }
}

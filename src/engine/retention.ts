import { setTimeout as pause } from "node:timers/promises";
import { type Duration, hours } from "../kernel/duration.ts";
import type { Database } from "../store/database.ts";
import { deleteOldest } from "../store/journal.ts";
import type { Log } from "../kernel/log.ts";

const EVERY = hours(1);
const BATCH = 5_000;

/** Forgets journal entries that are older than the retention, the oldest first and in small bites. */
export async function runRetention(
  { db, log, retention }: { readonly db: Database; readonly log: Log; readonly retention: Duration },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      let total = 0;
      for (let gone = BATCH; gone === BATCH && !signal.aborted; total += gone)
        gone = await deleteOldest(db, retention, BATCH);
      if (total > 0) log.info({ entries: total }, "journal entries past their retention were removed");
    } catch (error) {
      log.warn({ err: error }, "old journal entries could not be removed; trying again later");
    }
    await pause(EVERY * (0.8 + Math.random() * 0.4), undefined, { signal, ref: false }).catch(() => undefined);
  }
}

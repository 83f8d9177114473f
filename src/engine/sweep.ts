import { setTimeout as pause } from "node:timers/promises";
import type { Log } from "../kernel/log.ts";
import type { Duration } from "../kernel/time/duration.ts";
import { endExpiredReports } from "../store/device/health-changes.ts";
import type { ThingStores } from "../store/lifecycle/things.ts";
import * as work from "../store/lifecycle/work.ts";
import type { Database } from "../store/postgres/database.ts";

/**
 * The safety net: a thing that needs a pass and has no wake-up gets one, so that nothing can be stranded for long. Health reports that
 * have expired end here too: no call and no pass comes with their time.
 */
export async function sweep(db: Database, stores: ThingStores, log: Log): Promise<void> {
  for (const { lifecycle, table } of stores.values()) {
    const states = Object.entries(lifecycle.states);
    const liveStates = states.flatMap(([name, { terminal }]) => (terminal ? [] : [name]));
    const restingStates = states.flatMap(([name, { rest }]) => (rest ? [name] : []));
    const woken = await work.wakeStranded(db, { kind: lifecycle.kind, table, liveStates, restingStates });
    if (woken > 0) log.warn({ kind: lifecycle.kind, woken }, "things without a wake-up were found and woken");
  }
  await endExpiredReports(db, stores);
}

export async function runSweep(
  options: { readonly db: Database; readonly stores: ThingStores; readonly log: Log; readonly every: Duration },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await sweep(options.db, options.stores, options.log).catch((error: unknown) =>
      options.log.warn({ err: error }, "the safety sweep failed; it is tried again"),
    );
    await pause(options.every * (0.8 + Math.random() * 0.4), undefined, { signal, ref: false }).catch(() => undefined);
  }
}

import { setTimeout as pause } from "node:timers/promises";
import type { Log } from "../../kernel/log.ts";
import { type Clock, readingFor } from "../../kernel/time/clock.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import { nameOf } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Database } from "../../store/postgres/database.ts";
import type { Lease } from "./lease.ts";

/** Prolongs the leases of all passes under way, in one statement, until the signal aborts. */
export async function runLeaseKeeper(
  {
    db,
    owner,
    leases,
    clock,
    log,
    every,
  }: {
    readonly db: Database;
    readonly owner: string;
    readonly leases: ReadonlySet<Lease>;
    readonly clock: Clock;
    readonly log: Log;
    readonly every: Duration;
  },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await pause(every, undefined, { signal, ref: false }).catch(() => undefined);
    if (signal.aborted || leases.size === 0) continue;
    const held = [...leases];
    const askedAt = clock.monotonic();
    try {
      const renewal = work.renew(db, {
        owner,
        held: held.map(({ work, inDatabase }) => ({ ...work, leaseFor: inDatabase })),
        onTime: readingFor(clock),
      });
      for (const lease of held) lease.renewal = renewal;
      const names = new Set((await renewal).map(nameOf));
      for (const lease of held) if (names.has(nameOf(lease.work))) lease.renewed(askedAt);
    } catch (error) {
      // The leases then end by themselves, on our clock earlier than in the database.
      log.warn({ err: error }, "leases were not renewed");
    }
    for (const lease of held) if (lease.remaining <= 0) lease.lose();
  }
}

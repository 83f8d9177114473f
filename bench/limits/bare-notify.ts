import { setTimeout as pause } from "node:timers/promises";
import type { Database } from "../../src/store/postgres/database.ts";
import { percentile } from "../measurement.ts";

/** From the moment that a COMMIT is sent until a listener hears its NOTIFY: whoever waits for events cannot be faster. */
export async function bareNotify(db: Database, times: number): Promise<{ p50: number; p99: number }> {
  const stop = new AbortController();
  let heard = Promise.withResolvers<void>();
  await db.listen("bench", () => heard.resolve(), stop.signal);
  const latencies: number[] = [];
  for (let count = 0; count < times; count += 1) {
    heard = Promise.withResolvers();
    let sentAt = 0;
    await db.transaction(async (tx) => {
      await tx.query("select pg_notify('bench', ''), pg_current_xact_id()");
      sentAt = performance.now();
    });
    await heard.promise;
    latencies.push(performance.now() - sentAt);
    await pause(5);
  }
  stop.abort();
  return { p50: percentile(latencies, 0.5), p99: percentile(latencies, 0.99) };
}
